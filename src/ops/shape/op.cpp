// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/op.h"

#include "tactic/registry.h"

namespace tw::ops::shape {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    for (ir::Dim const& d : ctx.shape(0))
        if (d.isConst() && d.value() > INT32_MAX)
            return ctx.error("dimension " + d.str() + " of " + ctx.describe(0) + " does not fit into i32");
    ctx.output(0, DataType::kInt32, {ctx.rank(0)});
    ctx.outputContent(0, ctx.shape(0));
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "shape",
    TW_OP_PARTS(ir::NoAttrs),
    .readsDimsOnly = true,
    .mixesFloats = true,
};

} // namespace tw::ops::shape
