// SPDX-License-Identifier: Apache-2.0
// Activation functions on runs of numbers, and the end of a fused kernel: y = f(x + residual). For plain kernels.
#pragma once

#include <cstdint>
#include <span>

#include "base/step_code.h"
#include "base/types.h"
#include "ir/attrs.h"
#include "ops/activation/op.h"

namespace tw::ops {

// y[i] = f(x[i]); x and y may be one. In float; in double for tables of i8. NaN goes through where the op says so.
void activate(activation::Attrs const& a, float const* x, float* y, int64_t n);
void activate(activation::Attrs const& a, double const* x, double* y, int64_t n);

// What fused ops end with beyond activation::Kind: chains of layers that passes find (passes/fusion/match_activation.h). The numbers
// go on where those end; the emitters of kernels/jit use the same.
enum class FusedKind : int32_t
{
    kSwish = 12,     // x / (1 + exp(-x))
    kHardSwish = 13, // x max(0, min(1, alpha x + beta))
    kGeluErf = 14,   // x/2 (1 + erf(x / sqrt 2))
    kGeluTanh = 15,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
};
inline constexpr int kFusedKindCount = 16;

// Attributes of an activation that a fused op ends with; kNone: it has none.
struct FusedActivation
{
    static constexpr int32_t kNone = -1;
    int32_t kind = kNone; // activation::Kind or FusedKind
    float alpha = 0, beta = 0;

    FusedActivation() = default;
    FusedActivation(activation::Kind k, float a = 0, float b = 0) : kind(int32_t(k)), alpha(a), beta(b) {}
    explicit FusedActivation(FusedKind k, float a = 0, float b = 0) : kind(int32_t(k)), alpha(a), beta(b) {}
    explicit FusedActivation(ExpressionStep const& s) : kind(int32_t(s.kind)), alpha(s.alpha), beta(s.beta) {}
    explicit FusedActivation(activation::Attrs const& a) : FusedActivation(a.kind, a.alpha, a.beta) {}
    bool any() const { return kind != kNone; }
    bool isLayer() const { return kind >= 0 && kind < activation::kKindCount; } // an activation::Kind
    activation::Attrs attrs() const { return activation::Attrs(activation::Kind(kind), alpha, beta); }
    void visit(ir::AttrVisitor& v, int firstNumber)
    {
        v.field(firstNumber, "activation", kind);
        v.field(firstNumber + 1, "alpha", alpha);
        v.field(firstNumber + 2, "beta", beta);
    }
    // Empty when it is one that exists.
    std::string check() const;
};

// y[i] = f(x[i]); x and y may be one.
void activate(FusedActivation const& f, float const* x, float* y, int64_t n);
// Whether no result is below 0; ofNonNegative: no x is.
bool isNonNegative(FusedActivation const& f, bool ofNonNegative);
// In place on n elements of f32 or f16 (its bits).
void activateElements(FusedActivation const& f, DataType type, void* y, int64_t n);
// The same by the activation's reference; only of some elements, where any are given.
Result<void> activateReference(FusedActivation const& f, TensorRef const& y, std::span<int64_t const> elements = {});

} // namespace tw::ops
