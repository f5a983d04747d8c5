// SPDX-License-Identifier: Apache-2.0
#include "ops/cache_update/op.h"

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::cache_update {

namespace {

// An update whose rows hold all groups, [b, k, w].
Result<void> checkPacked(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    ir::Shape const &x = ctx.shape(0), &u = ctx.shape(1);
    if (x.size() != 4 || a.axis != 2 || u.size() != 3 || !x[1].isConst() || !x[3].isConst() || !u[2].isConst())
        return ctx.error("a packed update {} must have three dimensions, the cache {} four, rows in the third",
                         ctx.describe(1), ctx.describe(0));
    if (a.offset < 0 || a.offset > INT32_MAX || a.headStride > INT32_MAX || x[1].value() < 1 ||
        a.offset + (x[1].value() - 1) * a.headStride + x[3].value() > u[2].value())
        return ctx.error("offset {} and head stride {} of {} heads reach beyond the {} columns of {}", a.offset,
                         a.headStride, x[1].value(), u[2].value(), ctx.describe(1));
    auto isConst = [](ir::Dim const& d) { return d.isConst(); };
    if (a.pages)
        return {};
    if ((isConst(x[0]) && isConst(u[0]) && x[0].value() != u[0].value()) ||
        (isConst(x[2]) && isConst(u[1]) && u[1].value() > x[2].value()))
        return ctx.error("the update {} does not fit the cache {}", ctx.describe(1), ctx.describe(0));
    return {};
}

// A cache in blocks, which have nothing to do with images.
Result<void> checkPages(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    ir::Shape const &x = ctx.shape(0), &u = ctx.shape(1);
    if (x.size() != 4 || a.axis != 2 || a.circular || !x[2].is(kPageRows))
        return ctx.error("a cache in pages, {}, must be blocks of {} rows, [blocks, heads, {}, size], axis 2, and not "
                         "circular",
                         ctx.describe(0), kPageRows, kPageRows);
    if (!ctx.has(2) || !ctx.has(3) || ctx.type(3) != DataType::kInt32 || ctx.rank(3) != 2)
        return ctx.error("a cache in pages wants an index, and pages {}, i32 of shape [images, blocks of an image]",
                         ctx.has(3) ? ctx.describe(3) : "");
    if (u.empty())
        return ctx.error("the update {} must have dimensions, images first", ctx.describe(1));
    auto differ = [](ir::Dim const& p, ir::Dim const& q) { return p.isConst() && q.isConst() && !(p == q); };
    if (differ(ctx.shape(3)[0], u[0]) || (ctx.rank(2) == 1 && differ(ctx.shape(2)[0], u[0])))
        return ctx.error("the index {} and the pages {} must have numbers for each of the {} images", ctx.describe(2),
                         ctx.describe(3), u[0].str());
    if (!a.isPacked() && (u.size() != 4 || differ(u[1], x[1]) || differ(u[3], x[3])))
        return ctx.error("the update {} must have the heads of the cache {}, and rows as long", ctx.describe(1),
                         ctx.describe(0));
    return {};
}

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
    if (a.pages)
        TW_TRY(checkPages(ctx));
    else if (ctx.has(3))
        return ctx.error("{} is of no use where the cache is not in pages", ctx.describe(3));
    if (a.isPacked())
        TW_TRY(checkPacked(ctx));
    else if (a.headStride < 0 || a.offset != 0)
        return ctx.error("offset {} and head stride {} are out of range", a.offset, a.headStride);
    else if (ctx.rank(1) != r)
        return ctx.error("the update {} must have as many dimensions as the cache {}", ctx.describe(1),
                         ctx.describe(0));
    for (int d = 0; d < r && !a.isPacked() && !a.pages; ++d) {
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
        if (!a.pages && n.isConst() && count.isConst() && n.value() != count.value())
            return ctx.error("the index {} must have a number for each of the {} images", ctx.describe(2), n.value());
    }
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

// From below the first row to beyond the last; of pages, of a whole sequence.
void domain(ir::Node const& node, int input, Domain& d)
{
    if (input == 3) { // each block once
        d = Domain{0, 2, true, false, true};
        d.lo = 1;
        return;
    }
    if (input != 2)
        return;
    ir::Dim const& s = node.inputs[0]->shape[size_t(node.attrsAs<Attrs>().axis)];
    ir::Dim const pages = node.attrsAs<Attrs>().pages ? node.inputs[3]->shape[1] : ir::Dim(1);
    d = Domain{-2, double(s.isConst() ? s.value() * (pages.isConst() ? pages.value() : 1) + 1 : 4), true, false};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "cache_update",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 4},
    .domain = domain,
    .isCheap = true,
    .inPlace = ir::kFirstInPlace,
};

} // namespace tw::ops::cache_update
