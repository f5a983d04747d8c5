// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax/op.h"

#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::softmax {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    int64_t const axis = ctx.attrs<Attrs>().axis;
    if (!isFloating(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32 or f16");
    if (axis < 0 || axis >= ctx.rank(0))
        return ctx.error("axis {} is out of range for {} of rank {} (allowed: 0..{})", axis, ctx.describe(0),
                         ctx.rank(0), ctx.rank(0) - 1);
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

void domain(ir::Node const&, int, Domain& d)
{
    d.lo = -8; // a slice that is not nearly constant
    d.hi = 8;
}

void inspect(LayerFacts& facts)
{
    facts.kind("CudaSoftMax", "SoftMax");
    facts.add("Axes", int64_t(1) << facts.attrs<Attrs>().axis);
    facts.addFlag("HasLog", facts.attrs<Attrs>().log);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "softmax",
    TW_OP_PARTS(Attrs),
    .domain = domain,
    .isNonNegative = [](ir::Node const& n, ir::Signs&) { return !n.attrsAs<Attrs>().log; },
    .inspect = inspect,
};

} // namespace tw::ops::softmax
