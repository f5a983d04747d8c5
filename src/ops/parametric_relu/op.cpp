// SPDX-License-Identifier: Apache-2.0
#include "ops/parametric_relu/op.h"

#include "tactic/broadcast.h"
#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::parametric_relu {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    if (!isReal(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8; convert it with an identity layer");
    if (ctx.type(1) != ctx.type(0))
        return ctx.error("the slope, " + ctx.describe(1) + ", must have the type of " + ctx.describe(0));
    TW_ASSIGN(ir::Shape shape, broadcastInputs(ctx, 2));
    ctx.output(0, ctx.type(0), std::move(shape));
    return {};
}

void domain(ir::Node const& node, int, Domain& d)
{
    if (isQuantized(node.inputs[0]->type))
        d = Domain{-40, 40, true, false};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "parametric_relu",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 2},
    .domain = domain,
    .inspect = [](LayerFacts& facts) { facts.kind("ParametricReLU"); },
    .isElementwise = true,
};

} // namespace tw::ops::parametric_relu
