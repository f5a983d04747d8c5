// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/activate.h"

#include <algorithm>
#include <cmath>

#include "tactic/blocks.h"
#include "tactic/registry.h"

namespace tw::ops {

namespace {

using activation::Kind;

template <class T, class F>
void each(T const* x, T* y, int64_t n, F f)
{
    for (int64_t i = 0; i < n; ++i)
        y[i] = f(x[i]);
}

// Comparisons are turned so that NaN goes through.
template <class T>
void compute(activation::Attrs const& attrs, T const* x, T* y, int64_t n)
{
    T const alpha = attrs.alpha, beta = attrs.beta;
    switch (attrs.kind) {
    case Kind::kRelu:
        return each(x, y, n, [](T v) { return v < 0 ? T(0) : v; });
    case Kind::kSigmoid:
        return each(x, y, n, [](T v) { return 1 / (1 + std::exp(-v)); });
    case Kind::kTanh:
        return each(x, y, n, [](T v) { return std::tanh(v); });
    case Kind::kLeakyRelu:
        return each(x, y, n, [=](T v) { return v >= 0 ? v : alpha * v; });
    case Kind::kElu:
        return each(x, y, n, [=](T v) { return v >= 0 ? v : alpha * std::expm1(v); });
    case Kind::kSelu:
        return each(x, y, n, [=](T v) { return v > 0 ? beta * v : beta * (alpha * std::expm1(v)); });
    case Kind::kSoftsign:
        return each(x, y, n, [](T v) { return v / (1 + std::fabs(v)); });
    case Kind::kSoftplus:
        return each(x, y, n, [=](T v) {
            T const u = beta * v;
            return alpha * ((u < 0 ? T(0) : u) + std::log1p(std::exp(-std::fabs(u))));
        });
    case Kind::kClip:
        return each(x, y, n, [=](T v) {
            T const low = v > beta ? beta : v;
            return low < alpha ? alpha : low;
        });
    case Kind::kHardSigmoid:
        return each(x, y, n, [=](T v) {
            T const u = alpha * v + beta;
            T const low = u > 1 ? T(1) : u;
            return low < 0 ? T(0) : low;
        });
    case Kind::kScaledTanh:
        return each(x, y, n, [=](T v) { return alpha * std::tanh(beta * v); });
    case Kind::kThresholdedRelu:
        return each(x, y, n, [=](T v) { return v > alpha ? v : T(0); });
    }
}

} // namespace

void activate(activation::Attrs const& a, float const* x, float* y, int64_t n)
{
    compute(a, x, y, n);
}

void activate(activation::Attrs const& a, double const* x, double* y, int64_t n)
{
    compute(a, x, y, n);
}

void activate(FusedActivation const& f, float const* x, float* y, int64_t n)
{
    if (f.isLayer())
        return compute(f.attrs(), x, y, n);
    float const alpha = f.alpha, beta = f.beta;
    switch (FusedKind(f.kind)) {
    case FusedKind::kSwish:
        return each(x, y, n, [](float v) { return v / (1 + std::exp(-v)); });
    case FusedKind::kHardSwish:
        return each(x, y, n, [=](float v) {
            float const u = alpha * v + beta;
            float const low = u > 1 ? 1.0f : u;
            return v * (low < 0 ? 0.0f : low);
        });
    case FusedKind::kGeluErf:
        return each(x, y, n, [](float v) { return 0.5f * v * (1 + std::erf(v * 0.70710678f)); });
    case FusedKind::kGeluTanh: // sqrt(2 / pi)
        return each(x, y, n,
                    [](float v) { return 0.5f * v * (1 + std::tanh(0.79788456f * (v + 0.044715f * v * v * v))); });
    }
}

std::string FusedActivation::check() const
{
    if (kind < kNone || kind >= kFusedKindCount)
        return fmt::format("there is no activation kind {} (allowed: -1..{})", kind, kFusedKindCount - 1);
    if (!std::isfinite(alpha) || !std::isfinite(beta))
        return fmt::format("alpha {} and beta {} must be finite", alpha, beta);
    return {};
}

void activateElements(FusedActivation const& f, DataType type, void* y, int64_t n)
{
    if (!f.any())
        return;
    float buffer[kBlock];
    for (int64_t at = 0; at < n; at += kBlock) {
        int64_t const m = std::min(kBlock, n - at);
        float* out = floatsAt(type, y, at, buffer);
        activate(f, loadFloats(type, y, at, 1, m, buffer), out, m);
        storeFloats(type, y, at, m, out);
    }
}

namespace {

double product(FusedActivation const& f, double x)
{
    switch (FusedKind(f.kind)) {
    case FusedKind::kSwish:
        return x * (1 / (1 + std::exp(-x)));
    case FusedKind::kHardSwish: {
        double const u = double(f.alpha) * x + double(f.beta);
        return x * (std::isnan(u) ? u : std::fmax(0, std::fmin(1, u)));
    }
    case FusedKind::kGeluErf:
        return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case FusedKind::kGeluTanh: // sqrt(2 / pi)
        return 0.5 * x * (1 + std::tanh(0.797884560802865356 * (x + 0.044715 * x * x * x)));
    }
    return 0;
}

} // namespace

Result<void> activateReference(FusedActivation const& f, TensorRef const& y, std::span<int64_t const> elements)
{
    if (!f.any())
        return {};
    if (!elements.empty()) {
        Tensor const some(y.type, {int64_t(elements.size())});
        for (size_t i = 0; i < elements.size(); ++i)
            some.ref().set(int64_t(i), y.get(elements[i]));
        TW_TRY(activateReference(f, some.ref()));
        for (size_t i = 0; i < elements.size(); ++i)
            y.set(elements[i], some.ref().get(int64_t(i)));
        return {};
    }
    if (!f.isLayer()) {
        for (int64_t i = 0; i < y.count(); ++i)
            y.set(i, product(f, y.get(i)));
        return {};
    }
    ir::Node node;
    node.attrs = std::make_unique<activation::Attrs>(f.attrs());
    RefContext ctx(node, {y}, {y});
    return activation::reference(ctx);
}

bool isNonNegative(FusedActivation const& f, bool ofNonNegative)
{
    switch (ActivationKind(f.kind)) {
    case ActivationKind::kRelu:
    case ActivationKind::kSigmoid:
    case ActivationKind::kHardSigmoid:
        return true;
    case ActivationKind::kClip:
    case ActivationKind::kThresholdedRelu:
        return f.alpha >= 0;
    case ActivationKind::kTanh:
    case ActivationKind::kLeakyRelu:
    case ActivationKind::kSoftsign:
    case ActivationKind::kSwish:
    case ActivationKind::kGeluErf:
    case ActivationKind::kGeluTanh:
        return ofNonNegative;
    default:
        return false;
    }
}

} // namespace tw::ops
