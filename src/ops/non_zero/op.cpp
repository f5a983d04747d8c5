// SPDX-License-Identifier: Apache-2.0
#include "ops/non_zero/op.h"

#include <algorithm>
#include <cmath>

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::non_zero {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    int64_t const most = std::clamp<int64_t>(ctx.range(volume(ctx.shape(0))).hi, 0, INT32_MAX);
    ctx.output(0, DataType::kInt32, {ctx.rank(0), ctx.freshSymbol({0, most})});
    return {};
}

void domain(ir::Node const&, int, Domain& d)
{
    d = Domain{-1, 1, true, false}; // about one zero in three
}

[[gnu::cold]] void cases(CaseList& list)
{
    list.add("by_hand", ir::NoAttrs{}, {f32({2, 3}, {0, 5, 0, -1, 0, 0.5})}, {{0, 1, 1, 1, 0, 2}});
    list.add("none", ir::NoAttrs{}, {f32({2, 2}, {0, -0.0, 0, 0})}, {{}});
    list.add("all", ir::NoAttrs{}, {f32({3}, {1, NAN, INFINITY})}, {{0, 1, 2}});
    list.add("scalar", ir::NoAttrs{}, {f32({}, {3})}, {{}});
    list.add("empty", ir::NoAttrs{}, {f32({3, 0})}, {{}});
    list.add("rank_8", ir::NoAttrs{}, {f32({2, 1, 3, 2, 1, 2, 2, 2})});
    for (DataType t :
         {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8})
        list.add(std::string("type_") + nameOf(t), ir::NoAttrs{}, {input(t, {3, 4, 5})});
    list.add("half_negative_zero", ir::NoAttrs{}, {input(DataType::kHalf, {4}, {-0.0, 0, 6e-8, -1})}, {{2, 3}});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "non_zero",
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<ir::NoAttrs>()); },
        .infer = infer,
        .reference = reference,
        .domain = domain,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .mixesFloats = true,
    };
    return kDef;
}

} // namespace tw::ops::non_zero
