// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/fill/op.h"

namespace tw::ops::fill {

namespace {

void linspaceInts(RefContext& ctx, Attrs const& a)
{
    TensorRef const& y = ctx.out();
    uint64_t const start = uint64_t(ctx.has(1) ? ctx.in(1).getInt(0) : TensorRef::toInt(a.alpha));
    Counter at(y.dims);
    for (int64_t i = 0; i < y.count(); ++i, at.next()) {
        uint64_t v = start; // unsigned: wraps
        for (int d = 0; d < y.dims.rank; ++d)
            v += uint64_t(ctx.has(2) ? ctx.in(2).getInt(d) : TensorRef::toInt(a.beta)) * uint64_t(at.at[d]);
        y.setInt(i, int64_t(v));
    }
}

void linspace(RefContext& ctx, Attrs const& a)
{
    TensorRef const& y = ctx.out();
    Counter at(y.dims);
    for (int64_t i = 0; i < y.count(); ++i, at.next()) {
        double v = ctx.has(1) ? ctx.in(1).get(0) : a.alpha;
        for (int d = 0; d < y.dims.rank; ++d)
            v += (ctx.has(2) ? ctx.in(2).get(d) : a.beta) * double(at.at[d]);
        y.set(i, v);
    }
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const& y = ctx.out();
    if (a.operation == Operation::kLinspace) {
        if (y.type == DataType::kInt32)
            linspaceInts(ctx, a);
        else
            linspace(ctx, a);
        return {};
    }
    double const alpha = ctx.has(1) ? ctx.in(1).get(0) : a.alpha, beta = ctx.has(2) ? ctx.in(2).get(0) : a.beta;
    uint64_t state = ctx.randomState ? *ctx.randomState : 0;
    for (int64_t i = 0; i < y.count(); ++i) {
        if (a.operation == Operation::kRandomUniform) {
            y.set(i, alpha + uniformAt(state) * (beta - alpha));
            state += 1;
        } else { // Box and Muller, one value for two numbers
            double const radius = std::sqrt(-2 * std::log(positiveAt(state)));
            y.set(i, alpha + beta * radius * std::cos(2 * std::numbers::pi * uniformAt(state + 1)));
            state += 2;
        }
    }
    if (ctx.randomState)
        *ctx.randomState = state;
    return {};
}

} // namespace tw::ops::fill
