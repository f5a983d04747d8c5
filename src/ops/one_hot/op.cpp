// SPDX-License-Identifier: Apache-2.0
#include "ops/one_hot/op.h"

#include "tactic/registry.h"

namespace tw::ops::one_hot {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const rank = ctx.rank(0);
    if (ctx.type(0) != DataType::kInt32)
        return ctx.error("the indices, " + ctx.describe(0) + ", must be i32; convert them with an identity layer");
    if (ctx.type(1) == DataType::kUInt8)
        return ctx.error("the values, " + ctx.describe(1) + ", must not be u8; convert them with an identity layer");
    if (ctx.rank(1) != 1 || (ctx.shape(1)[0].isConst() && !ctx.shape(1)[0].is(2)))
        return ctx.error("the values, " + ctx.describe(1) + ", must have shape [2]: off, on");
    if (ctx.type(2) != DataType::kInt32)
        return ctx.error("the depth, " + ctx.describe(2) + ", must be i32");
    if (ir::Dim const n = ir::volume(ctx.shape(2)); ctx.rank(2) > 1 || (n.isConst() && !n.is(1)))
        return ctx.error("the depth, " + ctx.describe(2) + ", must be a scalar");
    if (a.axis < -rank - 1 || a.axis > rank)
        return ctx.error("axis {} is out of range for indices {} (allowed: {}..{})", a.axis, ctx.describe(0), -rank - 1,
                         rank);
    if (rank + 1 > kMaxRank)
        return ctx.error("indices {} may have at most {} dimensions", ctx.describe(0), kMaxRank - 1);
    auto const* content = ctx.content(2);
    if (ctx.concrete() && (!content || content->size() != 1))
        return ctx.error("the depth, " + ctx.describe(2) + ", is not known");
    ir::Dim const depth = content && content->size() == 1 ? (*content)[0] : ctx.freshSymbol(ir::Range{1, INT32_MAX});
    if (depth.isConst() && depth.value() < 1)
        return ctx.error("depth {} must be positive", depth.value());
    ir::Shape y = ctx.shape(0);
    y.insert(y.begin() + a.axisIn(rank + 1), depth);
    ctx.output(0, ctx.type(1), std::move(y));
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "one_hot",
    TW_OP_PARTS(Attrs),
    .inputs = {3, 3},
    .isShapeInput = [](ir::Node const&, size_t i) { return i == 2; },
    .isCheap = true,
};

} // namespace tw::ops::one_hot
