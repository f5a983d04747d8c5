// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/op.h"

#include "families/elementwise/layer_facts.h"
#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::activation {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (int(a.kind) < 0 || int(a.kind) >= kKindCount)
        return ctx.error("there is no activation kind {} (allowed: 0..{})", int(a.kind), kKindCount - 1);
    if (!std::isfinite(a.alpha) || !std::isfinite(a.beta))
        return ctx.error("alpha {} and beta {} must be finite", a.alpha, a.beta);
    if (!isReal(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8; convert it with an identity layer");
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

void domain(ir::Node const& node, int, Domain& d)
{
    DataType const type = node.inputs[0]->type;
    d = isQuantized(type) ? Domain::all(type) : Domain{-6, 6, false, false};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "activation",
    TW_OP_PARTS(Attrs),
    .domain = domain,
    .isNonNegative =
        [](ir::Node const& n, ir::Signs& signs) {
            return isNonNegative(FusedActivation(n.attrsAs<Attrs>()), ir::ofFirstInput(n, signs));
        },
    .inspect = [](LayerFacts& facts) { addFunction(facts, activationName(FusedActivation(facts.attrs<Attrs>()))); },
    .isElementwise = true,
    .isCheap = true,
    .computesShapes = true,
};

} // namespace tw::ops::activation
