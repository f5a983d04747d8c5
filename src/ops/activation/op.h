// SPDX-License-Identifier: Apache-2.0
// y[i] = f(x[i]) for the twelve activation functions; y has the shape and type of x (f32, f16, i8).
//   relu max(0, x)                    leaky_relu  x >= 0 ? x : alpha x         elu   x >= 0 ? x : alpha (exp x - 1)
//   sigmoid 1 / (1 + exp(-x))         selu  x > 0 ? beta x : beta (alpha exp x - alpha)
//   tanh                              softsign  x / (1 + |x|)                  softplus  alpha log(exp(beta x) + 1)
//   clip  max(alpha, min(beta, x))    hard_sigmoid  max(0, min(1, alpha x + beta))
//   scaled_tanh  alpha tanh(beta x)   thresholded_relu  x > alpha ? x : 0
// NaN stays NaN but in thresholded_relu. i8 is the function of the raw integer, rounded half to even and saturated.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::activation {

enum class Kind : int32_t // same numbers as nvinfer1::ActivationType
{
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
};
inline constexpr int kKindCount = 12;

struct Attrs : ir::AttrsOf<Attrs>
{
    Kind kind = Kind::kRelu;
    float alpha = 0, beta = 0;

    Attrs() = default;
    explicit Attrs(Kind k, float a = 0, float b = 0) : kind(k), alpha(a), beta(b) {}
    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "kind", kind);
        v.field(2, "alpha", alpha);
        v.field(3, "beta", beta);
    }
};

} // namespace tw::ops::activation
