// SPDX-License-Identifier: Apache-2.0
#include "ops/attention_guard/op.h"

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::attention_guard {

namespace {

Result<void> checkSizes(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.heads < 1 || a.valueSize < 1 || a.headsPerKey < 1 || a.heads % a.headsPerKey != 0)
        return ctx.error("{} heads of {} values, {} for each head of keys, are no heads", a.heads, a.valueSize,
                         a.headsPerKey);
    ir::Shape const &y = ctx.shape(0), &v = ctx.shape(1);
    if (y.size() != 3 || !y[2].is(ir::mulSat(a.heads, a.valueSize)))
        return ctx.error("the results {} must have three dimensions, the last one {}", ctx.describe(0),
                         ir::mulSat(a.heads, a.valueSize));
    if (v.size() == 4 && (!v[1].is(a.keyHeads()) || !v[3].is(a.valueSize)))
        return ctx.error("the values {} must be [images, {}, rows, {}]", ctx.describe(1), a.keyHeads(), a.valueSize);
    if (v.size() == 3 &&
        (!v[2].isConst() || a.v.offset < 0 || a.v.headStride < 0 ||
         ir::addSat(ir::addSat(a.v.offset, ir::mulSat(a.keyHeads() - 1, a.v.headStride)), a.valueSize) > v[2].value()))
        return ctx.error("offset {} and head stride {} of {} heads reach beyond the columns of {}", a.v.offset,
                         a.v.headStride, a.keyHeads(), ctx.describe(1));
    if (v.size() != 3 && v.size() != 4)
        return ctx.error("the values {} must have three or four dimensions", ctx.describe(1));
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    DataType const t = ctx.type(0);
    if (!isFloating(t))
        return ctx.error("the results {} must be floating numbers", ctx.describe(0));
    if (ctx.type(1) != t && !isQuantized(ctx.type(1)))
        return ctx.error("the values {} must have the type of the results {}, or i8", ctx.describe(1), ctx.describe(0));
    TW_TRY(checkSizes(ctx));
    auto differ = [](ir::Dim const& p, ir::Dim const& q) { return p.isConst() && q.isConst() && !(p == q); };
    ir::Dim const &batch = ctx.shape(0)[a.rowsFirst ? 1 : 0],
                  &images = ctx.shape(1)[size_t(a.v.batchAxis(ctx.rank(1)))];
    if (!a.pages && differ(batch, images))
        return ctx.error("the values {} must have the {} images of the results {}", ctx.describe(1), batch.str(),
                         ctx.describe(0));
    if (a.pages && (!a.lengths || ctx.rank(1) != 4 || !ctx.shape(1)[2].is(attention::kPageRows)))
        return ctx.error("values in pages, {}, must be blocks of {} rows, beside lengths", ctx.describe(1),
                         attention::kPageRows);
    for (size_t i = 2; i < 4; ++i) {
        int const rank = int(i) - 1;
        if (ctx.has(i) != (i < a.inputs()))
            return ctx.error("{} inputs are wanted", a.inputs());
        if (ctx.has(i) && (ctx.type(i) != DataType::kInt32 || ctx.rank(i) != rank || differ(ctx.shape(i)[0], batch)))
            return ctx.error("{} must be i32 of rank {}, for {} images", ctx.describe(i), rank, batch.str());
    }
    ctx.output(0, t, ctx.shape(0));
    return {};
}

// NaN among numbers, and values that are no numbers. Lengths within and beyond the rows.
void domain(ir::Node const& node, int input, Domain& d)
{
    auto const& a = node.attrsAs<Attrs>();
    if (input < 2) {
        d.specials = !isQuantized(node.inputs[size_t(input)]->type);
        return;
    }
    ir::Dim const rows = node.inputs[1]->shape[size_t(a.v.rowsAxis(node.inputs[1]->rank()))];
    d = Domain{-1, double(rows.isConst() ? rows.value() + 1 : 4), true};
    if (input == 3)
        d = Domain{-1, double(node.inputs[1]->shape[0].isConst() ? node.inputs[1]->shape[0].value() : 1), true};
}

} // namespace

Geometry geometryOf(Attrs const& a, std::span<TensorRef const> inputs)
{
    Extents const &y = inputs[0].dims, &v = inputs[1].dims;
    Geometry g;
    g.batch = y[a.rowsFirst ? 1 : 0];
    g.rows = y[a.rowsFirst ? 0 : 1];
    g.columns = v[a.v.rowsAxis(v.rank)];
    g.v = attention::operandStrides(v, a.v, a.keyHeads(), a.valueSize);
    g.lengthsInput = a.lengths ? 2 : -1;
    g.pagesInput = a.pages ? 3 : -1;
    if (a.pages) {
        g.blocks = v[0];
        g.columns = g.blocks > 0 ? inputs[3].dims[1] * attention::kPageRows : 0;
    }
    return g;
}

constinit ir::OpDef const kDef{
    .name = "attention_guard",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 4},
    .domain = domain,
    .isCheap = true,
};

} // namespace tw::ops::attention_guard
