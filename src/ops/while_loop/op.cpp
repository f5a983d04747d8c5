// SPDX-License-Identifier: Apache-2.0
#include "ops/while_loop/op.h"

#include "tactic/regions.h"
#include "tactic/registry.h"

namespace tw::ops::while_loop {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    int64_t const carried = ctx.attrs<Attrs>().carried;
    if (carried < 1 || carried > ctx.inputCount())
        return ctx.error(std::to_string(carried) + " carried values are not possible with " +
                         std::to_string(ctx.inputCount()) + " inputs (allowed: 1 to the number of inputs)");
    TW_TRY(checkRegionInputs(ctx, 0, 0, "condition"));
    TW_TRY(checkRegionInputs(ctx, 1, 0, "body"));
    ir::Graph const &condition = *ctx.node().regions[0], &body = *ctx.node().regions[1];
    if (condition.outputs.size() != 1 || condition.outputs[0]->type != DataType::kBool ||
        !volume(condition.outputs[0]->shape).is(1))
        return ctx.error("the region 'condition' must give one bool");
    if (int64_t(body.outputs.size()) != carried)
        return ctx.error("the region 'body' gives " + std::to_string(body.outputs.size()) + " values, " +
                         std::to_string(carried) + " are carried");
    for (int i = 0; i < int(carried); ++i) {
        ir::Value const &in = *body.inputs[size_t(i)], &out = *body.outputs[size_t(i)];
        if (out.type != in.type || out.shape != in.shape)
            return ctx.error("carried value " + std::to_string(i) + " is " + nameOf(in.type) + str(in.shape) +
                             " before an iteration and " + nameOf(out.type) + str(out.shape) +
                             " after it; type and shape must not change");
        ctx.output(i, ctx.type(i), ctx.shape(i));
    }
    return {};
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "while_loop",
        .minInputs = 1,
        .maxInputs = -1,
        .regionCount = 2,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .regions = ir::RegionKind::kLoop,
    };
    return kDef;
}

} // namespace tw::ops::while_loop
