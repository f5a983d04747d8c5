// SPDX-License-Identifier: Apache-2.0
#include "ops/quantize/op.h"

#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"
#include "tactic/scale_axis.h"

namespace tw::ops::quantize {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    if (!isFloating(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32 or f16");
    TW_TRY(checkScaleAxis(ctx, ctx.attrs<Attrs>().axis));
    ctx.output(0, DataType::kInt8, ctx.shape(0));
    return {};
}

void inspect(LayerFacts& facts)
{
    facts.kind("Quantize");
    facts.add("Axis", int64_t(facts.attrs<Attrs>().axis));
    facts.addWeights("Scale", facts.input(1));
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "quantize",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 2},
    .domain =
        [](ir::Node const&, int input, Domain& d) {
            d = input == 1 ? Domain{0.25, 2, false, false} : Domain{-140, 140, false, true};
        },
    .isNonNegative = ir::ofFirstInput, // scales are positive
    .inspect = inspect,
    .isElementwise = true,
    .isCheap = true,
    .mixesFloats = true,
};

} // namespace tw::ops::quantize
