// SPDX-License-Identifier: Apache-2.0
#include "ops/grid_sample/op.h"

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::grid_sample {

namespace {

using ir::Dim;
using ir::Shape;

Result<void> checkAttrs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.interpolation < Interpolation::kNearest || a.interpolation > Interpolation::kCubic)
        return ctx.error("interpolation {} is unknown (allowed: 0 to 2)", int(a.interpolation));
    if (a.outside < Outside::kClamp || a.outside > Outside::kReflect)
        return ctx.error("sample mode {} is not possible (allowed: 2 clamp, 3 fill, 4 reflect)", int(a.outside));
    return {};
}

Result<void> checkShapes(ir::InferContext& ctx)
{
    Shape const &x = ctx.shape(0), &grid = ctx.shape(1);
    if (x.size() != 4 || grid.size() != 4)
        return ctx.error("data " + ctx.describe(0) + " and grid " + ctx.describe(1) +
                         " must have rank 4: [n, c, h, w] and [n, p, q, 2]");
    if (grid[3].isConst() && !grid[3].is(2))
        return ctx.error("the last dimension of grid " + ctx.describe(1) + " must be 2, one number for each axis");
    if (x[0].isConst() && grid[0].isConst() && x[0].value() != grid[0].value())
        return ctx.error("data " + ctx.describe(0) + " and grid " + ctx.describe(1) +
                         " must have the same first dimension");
    Dim const points = x[0] * x[1] * grid[1] * grid[2];
    bool const isRead = ctx.attrs<Attrs>().outside != Outside::kFill && ctx.range(points).lo > 0;
    if (isRead && (x[2].is(0) || x[3].is(0)))
        return ctx.error("data " + ctx.describe(0) + " has no pixel to take; only the sample mode fill can do without");
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    TW_TRY(checkAttrs(ctx));
    for (int i = 0; i < 2; ++i)
        if (!isFloating(ctx.type(i)))
            return ctx.error(ctx.describe(i) + " must be f32 or f16");
    TW_TRY(checkShapes(ctx));
    Shape const &x = ctx.shape(0), &grid = ctx.shape(1);
    ctx.output(0, ctx.type(0), {x[0], x[1], grid[1], grid[2]});
    return {};
}

// A good part of the points lies outside.
void domain(ir::Node const&, int input, Domain& d)
{
    if (input == 1)
        d = Domain{-1.6, 1.6};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "grid_sample",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 2},
    .domain = domain,
};

} // namespace tw::ops::grid_sample
