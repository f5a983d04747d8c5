// SPDX-License-Identifier: Apache-2.0
#include "ops/fused_deconvolution/op.h"

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::fused_deconvolution {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    if (std::string const why = ctx.attrs<Attrs>().activation.check(); !why.empty())
        return ctx.error(why);
    return deconvolution::def().infer(ctx);
}

[[gnu::cold]] void cases(CaseList& list)
{
    using activation::Kind;
    deconvolution::Attrs const plain = deconvolution::Attrs::plain(2);
    deconvolution::Attrs strided = plain;
    strided.strides = {2, 2};
    strided.prePadding = {1, 1};
    strided.groups = 2;
    list.add("relu_by_hand", Attrs(plain, Kind::kRelu),
             {f32({1, 1, 1, 2}, {1, -2}), constant(DataType::kFloat, {1, 1, 1, 2}, {1, 3})}, {{1, 1, 0}});
    for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
        FusedActivation f;
        f.kind = k;
        f.alpha = 0.3f;
        f.beta = 1.25f;
        list.add("kind" + std::to_string(k + 1), Attrs(strided, f),
                 {f32({2, 4, 5, 7}), constant(DataType::kFloat, {4, 3, 3, 3}), constant(DataType::kFloat, {6})});
    }
    list.add("half", Attrs(plain, Kind::kSigmoid),
             {input(DataType::kHalf, {1, 3, 6, 7}), constant(DataType::kHalf, {3, 5, 3, 3})});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "fused_deconvolution",
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

} // namespace tw::ops::fused_deconvolution
