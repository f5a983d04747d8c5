// SPDX-License-Identifier: Apache-2.0
#include "ops/cache_update/op.h"

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::cache_update {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const r = ctx.rank(0);
    if (r < 2)
        return ctx.error("the cache " + ctx.describe(0) + " must have at least two dimensions, images first");
    if (a.axis < 1 || a.axis >= r)
        return ctx.error("axis {} is out of range for {} (allowed: 1..{})", a.axis, ctx.describe(0), r - 1);
    if (ctx.type(1) != ctx.type(0))
        return ctx.error("the update {} must have the type of the cache {}", ctx.describe(1), ctx.describe(0));
    if (ctx.rank(1) != r)
        return ctx.error("the update {} must have as many dimensions as the cache {}", ctx.describe(1),
                         ctx.describe(0));
    for (int d = 0; d < r; ++d) {
        ir::Dim const &x = ctx.shape(0)[size_t(d)], &u = ctx.shape(1)[size_t(d)];
        bool const isRow = d == a.axis;
        if (x.isConst() && u.isConst() && (isRow ? u.value() > x.value() : u.value() != x.value()))
            return ctx.error("dimension {} of the update {} must be {} that of the cache {}", d, ctx.describe(1),
                             isRow ? "at most" : "equal to", ctx.describe(0));
    }
    if (ctx.has(2)) {
        if (ctx.type(2) != DataType::kInt32 || ctx.rank(2) != 1)
            return ctx.error("the index {} must be i32 of one dimension", ctx.describe(2));
        ir::Dim const &n = ctx.shape(0)[0], &count = ctx.shape(2)[0];
        if (n.isConst() && count.isConst() && n.value() != count.value())
            return ctx.error("the index {} must have a number for each of the {} images", ctx.describe(2), n.value());
    }
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

// From below the first row to beyond the last.
void domain(ir::Node const& node, int input, Domain& d)
{
    if (input != 2)
        return;
    ir::Dim const& s = node.inputs[0]->shape[size_t(node.attrsAs<Attrs>().axis)];
    d = Domain{-2, double(s.isConst() ? s.value() + 1 : 4), true, false};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "cache_update",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 3},
    .domain = domain,
    .isCheap = true,
    .writesInPlace = true,
};

} // namespace tw::ops::cache_update
