// SPDX-License-Identifier: Apache-2.0
// Functions of one number that kernels can end with, alpha and beta as in src/ops/activation/op.h.
#pragma once

#include <cstdint>

namespace tw::kernels::jit {

enum class ActivationKind : int32_t
{
    // Same numbers as ops::activation::Kind.
    kRelu = 0,
    kSigmoid = 1,
    kTanh = 2,
    kLeakyRelu = 3,
    kElu = 4,
    kSelu = 5,
    kSoftsign = 6,
    kSoftplus = 7,
    kClip = 8,
    kHardSigmoid = 9,
    kScaledTanh = 10,
    kThresholdedRelu = 11,
    // Chains of several layers that the passes find.
    kSwish = 12,     // x / (1 + exp(-x))
    kHardSwish = 13, // x max(0, min(1, alpha x + beta))
    kGeluErf = 14,   // x/2 (1 + erf(x / sqrt 2))
    kGeluTanh = 15,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
};
inline constexpr int kActivationKinds = 16;

struct Activation
{
    ActivationKind kind = ActivationKind::kRelu;
    float alpha = 0, beta = 0;
};

} // namespace tw::kernels::jit
