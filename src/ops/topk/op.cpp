// SPDX-License-Identifier: Apache-2.0
#include "ops/topk/op.h"

#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::topk {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const kind = int(a.kind), rank = ctx.rank(0);
    if (kind != int(Kind::kMax) && kind != int(Kind::kMin))
        return ctx.error("top-k operation {} does not exist (allowed: 0, 1)", kind);
    if (!isReal(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8");
    if (a.axis < 0 || a.axis >= rank)
        return ctx.error("axis {} is out of range for {} of rank {}", a.axis, ctx.describe(0), rank);
    if (a.axis < rank - 4)
        return ctx.error("axis {} of {} must be one of the last four; transpose the input", a.axis, ctx.describe(0));
    if (a.k < 1 || a.k > kMaxK)
        return ctx.error("k {} is out of range (allowed: 1..{})", a.k, kMaxK);
    ir::Shape y = ctx.shape(0);
    ir::Dim& d = y[size_t(a.axis)];
    if (d.isConst() && d.value() < a.k)
        return ctx.error("k {} is above the {} elements of axis {} of {}", a.k, d.str(), a.axis, ctx.describe(0));
    d = a.k;
    ctx.output(0, ctx.type(0), y);
    ctx.output(1, DataType::kInt32, std::move(y));
    return {};
}

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    facts.kind("TopK");
    facts.add("Operation", a.kind == Kind::kMax ? "kMAX" : "kMIN");
    facts.add("K", a.k);
    facts.add("Axes", int64_t(1) << a.axis);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "topk",
    TW_OP_PARTS(Attrs),
    .inspect = inspect,
};

} // namespace tw::ops::topk
