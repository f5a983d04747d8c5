// SPDX-License-Identifier: Apache-2.0
#include "ops/fused_fully_connected/op.h"

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::fused_fully_connected {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    if (std::string const why = ctx.attrs<Attrs>().activation.check(); !why.empty())
        return ctx.error(why);
    return fully_connected::def().infer(ctx);
}

[[gnu::cold]] void cases(CaseList& list)
{
    using activation::Kind;
    list.add("relu_by_hand", Attrs(Kind::kRelu),
             {f32({1, 2, 1, 1}, {1, -2}), constant(DataType::kFloat, {2, 2}, {1, 1, 3, 1}),
              constant(DataType::kFloat, {2}, {0.5, 0})},
             {{0, 1}});
    for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
        FusedActivation f;
        f.kind = k;
        f.alpha = 0.3f;
        f.beta = 1.25f;
        list.add("kind" + std::to_string(k + 1), Attrs(f),
                 {f32({3, 4, 5, 2}), constant(DataType::kFloat, {9, 40}), constant(DataType::kFloat, {9})});
    }
    list.add(
        "half", Attrs(Kind::kSigmoid),
        {input(DataType::kHalf, {2, 3, 4, 5}), constant(DataType::kHalf, {7, 60}), constant(DataType::kHalf, {7})});
    list.add("half_rows", Attrs(FusedActivation(FusedKind::kHardSwish, 0.25f, 0.5f)),
             {input(DataType::kHalf, {70, 8, 5, 5}), constant(DataType::kHalf, {136, 200}),
              constant(DataType::kHalf, {136})});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "fused_fully_connected",
        .minInputs = 2,
        .maxInputs = 3,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
    };
    return kDef;
}

} // namespace tw::ops::fused_fully_connected
