// SPDX-License-Identifier: Apache-2.0
#include "ops/select/op.h"

#include "tactic/broadcast.h"
#include "tactic/registry.h"

namespace tw::ops::select {

namespace {

using ir::Dim;

void inferContent(ir::InferContext& ctx, ir::Shape const& shape)
{
    auto const *c = ctx.content(0), *a = ctx.content(1), *b = ctx.content(2);
    if (!c || !a || !b)
        return;
    ContentMap const map = contentMap(ctx, shape, 3);
    if (!map.known)
        return;
    std::vector<Dim> out;
    for (size_t i = 0; i < map.from[0].size(); ++i) {
        size_t const ci = size_t(map.from[0][i]), ai = size_t(map.from[1][i]), bi = size_t(map.from[2][i]);
        if (ci >= c->size() || ai >= a->size() || bi >= b->size())
            return;
        Dim const &condition = (*c)[ci], &x = (*a)[ai], &y = (*b)[bi];
        if (condition.isConst() || x == y)
            out.push_back(condition.is(0) ? y : x);
        else
            out.push_back(condition * x + (Dim(1) - condition) * y);
    }
    ctx.outputContent(0, std::move(out));
}

Result<void> infer(ir::InferContext& ctx)
{
    if (ctx.type(0) != DataType::kBool)
        return ctx.error("the condition, " + ctx.describe(0) + ", must be b; compare or convert it first");
    if (ctx.type(1) != ctx.type(2))
        return ctx.error(ctx.describe(1) + " and " + ctx.describe(2) +
                         " must have one type; convert one with an identity layer");
    if (ctx.type(1) == DataType::kUInt8)
        return ctx.error(ctx.describe(1) + " must not be u8; convert it with an identity layer");
    TW_ASSIGN(ir::Shape shape, broadcastInputs(ctx, 3));
    ctx.output(0, ctx.type(1), shape);
    inferContent(ctx, shape);
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "select",
    TW_OP_PARTS(Attrs),
    .inputs = {3, 3},
    .isCheap = true,
    .computesShapes = true,
};

} // namespace tw::ops::select
