// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/activation/op.h"
#include "ops/blocks.h"

namespace tw::ops::activation {

namespace {

template <class T, class F>
void each(T const* x, T* y, int64_t n, F f)
{
    for (int64_t i = 0; i < n; ++i)
        y[i] = f(x[i]);
}

// In float for f32 and f16, in double for the table of i8. Comparisons are turned so that NaN goes through.
template <class T>
void compute(Attrs const& attrs, T const* x, T* y, int64_t n)
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

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& attrs = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const count = y.count();
    if (x.type == DataType::kInt8) {
        double from[256], to[256];
        int8_t table[256]; // by the byte of x
        for (int i = 0; i < 256; ++i)
            from[i] = int8_t(uint8_t(i));
        compute(attrs, from, to, 256);
        for (int i = 0; i < 256; ++i)
            table[i] = saturateToInt8(to[i]);
        for (int64_t i = 0; i < count; ++i)
            y.as<int8_t>()[i] = table[x.as<uint8_t>()[i]];
        return {};
    }
    if (x.type == DataType::kFloat) {
        compute(attrs, x.as<float>(), y.as<float>(), count);
        return {};
    }
    float in[kBlock], out[kBlock];
    for (int64_t at = 0; at < count; at += kBlock) {
        int64_t const n = std::min(kBlock, count - at);
        compute(attrs, loadFloats(x.type, x.data, at, 1, n, in), out, n);
        storeFloats(y.type, y.data, at, n, out);
    }
    return {};
}

constexpr PlainTactic kPlain{"activation_plain", 1, run};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::activation
