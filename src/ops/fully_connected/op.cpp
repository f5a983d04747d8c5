// SPDX-License-Identifier: Apache-2.0
#include "ops/fully_connected/op.h"

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::fully_connected {

namespace {

using ir::Dim;
using ir::Shape;

Result<void> infer(ir::InferContext& ctx)
{
    Shape const &x = ctx.shape(0), &w = ctx.shape(1);
    if (x.size() < 3)
        return ctx.error(ctx.describe(0) + " must have at least 3 dimensions");
    if (!isFloating(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32 or f16");
    if (ctx.type(1) != ctx.type(0) || (ctx.has(2) && ctx.type(2) != ctx.type(0)))
        return ctx.error("input, kernel and bias must have one type");
    if (!x[x.size() - 3].isConst())
        return ctx.error("the channel dimension of " + ctx.describe(0) + " must not be a wildcard");
    if (w.empty() || !isStatic(w))
        return ctx.error("kernel " + ctx.describe(1) + " must have known dimensions, outputs first");
    Dim const k = w[0], kernelVolume = volume(Shape(w.begin() + 1, w.end()));
    Dim const inputVolume = volume(Shape(x.end() - 3, x.end()));
    if (inputVolume.isConst() && !(inputVolume == kernelVolume))
        return ctx.error("kernel " + ctx.describe(1) + " has " + kernelVolume.str() +
                         " weights for each output, the last three dimensions of " + ctx.describe(0) + " have volume " +
                         inputVolume.str());
    if (ctx.has(2) && !(ctx.rank(2) == 1 && ctx.shape(2)[0] == k))
        return ctx.error("bias " + ctx.describe(2) + " must have shape [" + k.str() + "]");
    Shape y(x.begin(), x.end() - 3);
    y.push_back(k);
    y.emplace_back(1);
    y.emplace_back(1);
    ctx.output(0, ctx.type(0), std::move(y));
    return {};
}

[[gnu::cold]] void cases(CaseList& list)
{
    auto connect = [&](char const* name, DataType t, Extents const& x, Extents const& w, bool bias) {
        std::vector<CaseInput> in{input(t, x), constant(t, w)};
        if (bias)
            in.push_back(constant(t, {w[0]}));
        list.add(name, ir::NoAttrs{}, in);
    };
    list.add("by_hand", ir::NoAttrs{},
             {f32({1, 2, 1, 2}, {1, 2, 3, 4}), constant(DataType::kFloat, {2, 4}, {1, 1, 1, 1, 1, 0, -1, 0}),
              constant(DataType::kFloat, {2}, {0, 10})},
             {{10, 8}});
    connect("rank_3", DataType::kFloat, {3, 4, 5}, {7, 60}, true);
    connect("batch_1", DataType::kFloat, {1, 3, 4, 5}, {33, 60}, true);
    connect("batch_9", DataType::kFloat, {9, 3, 4, 5}, {33, 60}, false);
    connect("kernel_4d", DataType::kFloat, {5, 3, 4, 5}, {8, 3, 4, 5}, true);
    connect("batch_dims", DataType::kFloat, {2, 3, 4, 1, 1}, {5, 4}, true);
    connect("one_output", DataType::kFloat, {6, 40, 1, 1}, {1, 40}, true);
    connect("large", DataType::kFloat, {5, 10, 6, 7}, {260, 420}, true);
    connect("inner_huge", DataType::kFloat, {15, 5001, 1, 1}, {34, 5001}, true);
    connect("empty_batch", DataType::kFloat, {0, 3, 2, 2}, {5, 12}, true);
    connect("no_channels", DataType::kFloat, {2, 0, 2, 2}, {5, 0}, true);
    connect("half_1", DataType::kHalf, {1, 3, 4, 5}, {9, 60}, true);
    connect("half_rows", DataType::kHalf, {131, 8, 5, 5}, {72, 200}, true);
    connect("half_1000", DataType::kHalf, {1, 512, 1, 1}, {1000, 512}, true);
    connect("half_no_bias", DataType::kHalf, {2, 3, 8, 3, 3}, {71, 8, 3, 3}, false);
    connect("half_6", DataType::kHalf, {6, 3, 4, 5}, {9, 60}, false);
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "fully_connected",
        .minInputs = 2,
        .maxInputs = 3,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<ir::NoAttrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
    };
    return kDef;
}

} // namespace tw::ops::fully_connected
