// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <cmath>

#include "ops/attention_guard/op.h"

namespace tw::ops::attention_guard {

namespace {

// The sum over keys of image b of 0 * v, in head h, element d.
double nothingOf(RefContext& ctx, Geometry const& g, int64_t b, int64_t h, int64_t d)
{
    auto const& a = ctx.attrs<Attrs>();
    int64_t const keys = a.lengths ? std::clamp<int64_t>(ctx.in(2).getInt(b), 0, g.columns) : g.columns;
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
        int64_t image = b, row = j;
        if (a.pages) {
            image = std::clamp<int64_t>(ctx.in(3).getInt((b * g.columns + j) / attention::kPageRows), 0, g.blocks - 1);
            row = j % attention::kPageRows;
        }
        sum += 0 * ctx.in(1).get(g.v.offset + image * g.v.batch + h / a.headsPerKey * g.v.head + row * g.v.row + d);
    }
    return sum;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &y = ctx.in(0), &z = ctx.out();
    Geometry const g =
        geometryOf(a, std::vector<TensorRef>{y, ctx.in(1), a.lengths ? ctx.in(2) : y, a.pages ? ctx.in(3) : y});
    int64_t const width = a.heads * a.valueSize;
    for (int64_t i = 0; i < y.count(); ++i) {
        int64_t const b = a.rowsFirst ? i / width % g.batch : i / width / g.rows, column = i % width;
        z.set(i, std::isnan(y.get(i)) ? nothingOf(ctx, g, b, column / a.valueSize, column % a.valueSize) : y.get(i));
    }
    return {};
}

} // namespace tw::ops::attention_guard
