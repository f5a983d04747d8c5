// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/op.h"

#include "tactic/cases.h"
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

[[gnu::cold]] void cases(CaseList& list)
{
    list.add("by_hand", ir::NoAttrs{}, {f32({2, 3, 5})}, {{2, 3, 5}});
    list.add("scalar", ir::NoAttrs{}, {f32({})}, {{}});
    list.add("empty", ir::NoAttrs{}, {input(DataType::kInt8, {4, 0})}, {{4, 0}});
    list.add("rank_8", ir::NoAttrs{}, {input(DataType::kBool, {1, 2, 1, 2, 1, 2, 1, 3})}, {{1, 2, 1, 2, 1, 2, 1, 3}});
    list.add("half", ir::NoAttrs{}, {input(DataType::kHalf, {7})}, {{7}});
    list.add("of_shape_tensor", ir::NoAttrs{}, {input(DataType::kInt32, {3})}, {{3}});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "shape",
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<ir::NoAttrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .readsDimsOnly = true,
        .mixesFloats = true,
    };
    return kDef;
}

} // namespace tw::ops::shape
