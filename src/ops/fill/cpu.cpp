// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/fill/op.h"
#include "tactic/blocks.h"

namespace tw::ops::fill {

namespace {

// alpha or beta: element i of the input, or the attribute.
double realAt(TensorRef const& t, int64_t i, double attribute)
{
    return t.data ? t.get(i) : attribute;
}
int32_t wholeAt(TensorRef const& t, int64_t i, double attribute)
{
    return t.data ? t.as<int32_t>()[i] : int32_t(uint32_t(uint64_t(TensorRef::toInt(attribute))));
}

// Row by row: `start` is the value at the row's first element.
template <class T, class Start, class Row>
void rows(Extents const& y, T const* step, Start start, Row row)
{
    int64_t const n = y.rank > 0 ? y[y.rank - 1] : 1;
    Extents outer = y;
    outer.rank = std::max(0, y.rank - 1);
    if (y.volume() == 0)
        return;
    Counter at(outer);
    int64_t first = 0;
    do {
        T value = start;
        for (int d = 0; d < outer.rank; ++d)
            value += step[d] * T(at.at[d]);
        row(first, n, value);
        first += n;
    } while (at.next());
}

void linspace(Attrs const& a, TensorRef const& alpha, TensorRef const& beta, TensorRef const& y)
{
    int const rank = y.dims.rank;
    if (y.type == DataType::kInt32) {
        uint32_t step[kMaxRank]{}; // unsigned: wraps
        for (int d = 0; d < rank; ++d)
            step[d] = uint32_t(wholeAt(beta, d, a.beta));
        uint32_t const last = rank > 0 ? step[rank - 1] : 0;
        rows(y.dims, step, uint32_t(wholeAt(alpha, 0, a.alpha)), [&](int64_t first, int64_t n, uint32_t value) {
            uint32_t* to = y.as<uint32_t>() + first;
            for (int64_t i = 0; i < n; ++i)
                to[i] = value + last * uint32_t(i);
        });
        return;
    }
    double step[kMaxRank]{};
    for (int d = 0; d < rank; ++d)
        step[d] = realAt(beta, d, a.beta);
    double const last = rank > 0 ? step[rank - 1] : 0;
    float block[kBlock];
    rows(y.dims, step, realAt(alpha, 0, a.alpha), [&](int64_t first, int64_t n, double value) {
        for (int64_t i = 0; i < n; i += kBlock) {
            int64_t const count = std::min(kBlock, n - i);
            float* to = floatsAt(y.type, y.data, first + i, block);
            for (int64_t k = 0; k < count; ++k)
                to[k] = float(value + last * double(i + k));
            storeFloats(y.type, y.data, first + i, count, to);
        }
    });
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const& y = args.outputs[0];
    auto const optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    TensorRef const alphaInput = optional(1), betaInput = optional(2);
    if (a.operation == Operation::kLinspace) {
        linspace(a, alphaInput, betaInput, y);
        return {};
    }
    double const alpha = realAt(alphaInput, 0, a.alpha), beta = realAt(betaInput, 0, a.beta);
    uint64_t const state = args.randomState ? *args.randomState : 0;
    int64_t const count = y.count();
    bool const isNormal = a.operation == Operation::kRandomNormal;
    float block[kBlock];
    for (int64_t at = 0; at < count; at += kBlock) {
        int64_t const n = std::min(kBlock, count - at);
        float* to = floatsAt(y.type, y.data, at, block);
        if (isNormal) {
            for (int64_t i = 0; i < n; ++i) {
                uint64_t const k = state + 2 * uint64_t(at + i);
                double const angle = 2 * std::numbers::pi * uniformAt(k + 1);
                to[i] = float(alpha + beta * std::sqrt(-2 * std::log(positiveAt(k))) * std::cos(angle));
            }
        } else {
            for (int64_t i = 0; i < n; ++i)
                to[i] = float(alpha + (beta - alpha) * uniformAt(state + uint64_t(at + i)));
        }
        storeFloats(y.type, y.data, at, n, to);
    }
    if (args.randomState)
        *args.randomState = state + uint64_t(count) * (isNormal ? 2 : 1);
    return {};
}

constexpr PlainTactic kPlain{"fill_any_plain_cpu", 1, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::fill
