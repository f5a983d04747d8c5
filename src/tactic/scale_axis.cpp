// SPDX-License-Identifier: Apache-2.0
#include "tactic/scale_axis.h"

namespace tw::ops {

Result<void> checkScaleAxis(ir::InferContext const& ctx, int32_t axis)
{
    if (!isFullFloat(ctx.type(1)))
        return ctx.error("the scale, " + ctx.describe(1) + ", must be f32");
    if (ctx.rank(1) > 1)
        return ctx.error("the scale, " + ctx.describe(1) + ", must have no dimension or one");
    if (axis < -1 || axis >= ctx.rank(0))
        return ctx.error("axis {} is out of range for {} (allowed: -1, one scale for all{})", axis, ctx.describe(0),
                         ctx.rank(0) > 0 ? fmt::format(", and 0..{}", ctx.rank(0) - 1) : std::string());
    ir::Dim const count = ir::volume(ctx.shape(1)), want = axis < 0 ? ir::Dim(1) : ctx.shape(0)[size_t(axis)];
    if (count.isConst() && want.isConst() && !(count == want))
        return ctx.error("the scale, " + ctx.describe(1) + ", has " + count.str() + " elements; " +
                         (axis < 0 ? std::string("without an axis it has 1")
                                   : fmt::format("axis {} of {} needs {}", axis, ctx.describe(0), want.str())));
    return {};
}

} // namespace tw::ops
