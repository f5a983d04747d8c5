// SPDX-License-Identifier: Apache-2.0
#include "ops/cumulative_sum/op.h"

#include "tactic/registry.h"

namespace tw::ops::cumulative_sum {

namespace {

// Known elements, as in shape arithmetic.
void propagateContent(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    auto const* content = ctx.content(0);
    if (!content || !isStatic(ctx.shape(0)))
        return;
    Extents const x = extentsOf(ctx.shape(0));
    int const axis = int(a.axis);
    int64_t const n = x[axis], inner = x.volume(axis + 1, x.rank);
    if (int64_t(content->size()) != x.volume())
        return;
    std::vector<ir::Dim> y(content->size());
    for (int64_t line = 0; n > 0 && line < x.volume() / n; ++line) {
        ir::Dim sum = 0;
        for (int64_t p = 0; p < n; ++p) {
            size_t const at = size_t((line / inner * n + (a.reverse ? n - 1 - p : p)) * inner + line % inner);
            ir::Dim const before = sum;
            sum = sum + (*content)[at];
            y[at] = a.exclusive ? before : sum;
        }
    }
    ctx.outputContent(0, std::move(y));
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const r = ctx.rank(0);
    if (!isFloating(ctx.type(0)) && ctx.type(0) != DataType::kInt32)
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i32");
    if (r < 1)
        return ctx.error(ctx.describe(0) + " must have at least one dimension");
    if (a.axis < 0 || a.axis >= r)
        return ctx.error("axis {} is out of range for {} (allowed: 0..{})", a.axis, ctx.describe(0), r - 1);
    ctx.output(0, ctx.type(0), ctx.shape(0));
    propagateContent(ctx);
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "cumulative_sum",
    TW_OP_PARTS(Attrs),
    .isCheap = true,
};

} // namespace tw::ops::cumulative_sum
