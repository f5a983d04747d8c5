// SPDX-License-Identifier: Apache-2.0
#include "ops/dequantize/op.h"

#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"
#include "tactic/scale_axis.h"

namespace tw::ops::dequantize {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (!isQuantized(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be i8");
    if (!isFloating(a.outputType))
        return ctx.error("there is no output type {} (allowed: 0 f32, 1 f16)", int(a.outputType));
    TW_TRY(checkScaleAxis(ctx, a.axis));
    ctx.output(0, a.outputType, ctx.shape(0));
    return {};
}

void inspect(LayerFacts& facts)
{
    facts.kind("Dequantize");
    facts.add("Axis", int64_t(facts.attrs<Attrs>().axis));
    facts.addWeights("Scale", facts.input(1));
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "dequantize",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 2},
    .domain =
        [](ir::Node const&, int input, Domain& d) {
            d = input == 1 ? Domain{0.01, 2, false, false} : Domain{-128, 127, true, false};
        },
    // One rounding, or two: the same on every device.
    .tolerance =
        [](ir::Node const&, DataType) {
            return Tolerance{0, 0};
        },
    .inspect = inspect,
    .isElementwise = true,
    .isCheap = true,
    .mixesFloats = true,
};

} // namespace tw::ops::dequantize
