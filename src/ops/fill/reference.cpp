// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/fill/op.h"

namespace tw::ops::fill {

namespace {

// Where element i of y stands.
struct Place
{
    int64_t at[kMaxRank];
    Place(Extents const& y, int64_t i)
    {
        for (int d = y.rank - 1; d >= 0; --d) {
            at[d] = i % y[d];
            i /= y[d];
        }
    }
};

void linspaceInts(RefContext& ctx, Attrs const& a)
{
    TensorRef const& y = ctx.out();
    uint64_t const start = uint64_t(ctx.has(1) ? ctx.in(1).getInt(0) : TensorRef::toInt(a.alpha));
    ctx.forEachWanted([&](int64_t i) {
        Place const place(y.dims, i);
        uint64_t v = start; // unsigned: wraps
        for (int d = 0; d < y.dims.rank; ++d)
            v += uint64_t(ctx.has(2) ? ctx.in(2).getInt(d) : TensorRef::toInt(a.beta)) * uint64_t(place.at[d]);
        y.setInt(i, int64_t(v));
    });
}

void linspace(RefContext& ctx, Attrs const& a)
{
    TensorRef const& y = ctx.out();
    ctx.forEachWanted([&](int64_t i) {
        Place const place(y.dims, i);
        double v = ctx.has(1) ? ctx.in(1).get(0) : a.alpha;
        for (int d = 0; d < y.dims.rank; ++d)
            v += (ctx.has(2) ? ctx.in(2).get(d) : a.beta) * double(place.at[d]);
        y.set(i, v);
    });
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
    uint64_t const first = ctx.randomState ? *ctx.randomState : 0;
    bool const isUniform = a.operation == Operation::kRandomUniform;
    uint64_t const step = isUniform ? 1 : 2; // numbers that an element takes
    ctx.forEachWanted([&](int64_t i) {
        uint64_t const state = first + step * uint64_t(i);
        if (isUniform) {
            y.set(i, alpha + uniformAt(state) * (beta - alpha));
        } else { // Box and Muller, one value for two numbers
            double const radius = std::sqrt(-2 * std::log(positiveAt(state)));
            y.set(i, alpha + beta * radius * std::cos(2 * std::numbers::pi * uniformAt(state + 1)));
        }
    });
    if (ctx.randomState)
        *ctx.randomState = first + step * uint64_t(y.count());
    return {};
}

} // namespace tw::ops::fill
