// SPDX-License-Identifier: Apache-2.0
#include "ops/select/op.h"

#include "tactic/broadcast.h"
#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::select {

namespace {

using ir::Dim;

void inferContent(ir::InferContext& ctx, ir::Shape const& shape)
{
    auto const *c = ctx.content(0), *a = ctx.content(1), *b = ctx.content(2);
    if (!c || !a || !b)
        return;
    ContentMap const map = contentMap(ctx, shape, 3);
    if (!map.known)
        return;
    std::vector<Dim> out;
    for (size_t i = 0; i < map.from[0].size(); ++i) {
        size_t const ci = size_t(map.from[0][i]), ai = size_t(map.from[1][i]), bi = size_t(map.from[2][i]);
        if (ci >= c->size() || ai >= a->size() || bi >= b->size())
            return;
        Dim const &condition = (*c)[ci], &x = (*a)[ai], &y = (*b)[bi];
        if (condition.isConst() || x == y)
            out.push_back(condition.is(0) ? y : x);
        else
            out.push_back(condition * x + (Dim(1) - condition) * y);
    }
    ctx.outputContent(0, std::move(out));
}

Result<void> infer(ir::InferContext& ctx)
{
    if (ctx.type(0) != DataType::kBool)
        return ctx.error("the condition, " + ctx.describe(0) + ", must be b; compare or convert it first");
    if (ctx.type(1) != ctx.type(2))
        return ctx.error(ctx.describe(1) + " and " + ctx.describe(2) +
                         " must have one type; convert one with an identity layer");
    if (ctx.type(1) == DataType::kUInt8)
        return ctx.error(ctx.describe(1) + " must not be u8; convert it with an identity layer");
    TW_ASSIGN(ir::Shape shape, broadcastInputs(ctx, 3));
    ctx.output(0, ctx.type(1), shape);
    inferContent(ctx, shape);
    return {};
}

[[gnu::cold]] void cases(CaseList& list)
{
    auto bools = [](Extents const& e, std::vector<double> v = {}) { return input(DataType::kBool, e, std::move(v)); };
    Attrs const none;
    list.add("by_hand", none, {bools({2, 2}, {1, 0, 0, 1}), f32({2, 2}, {1, 2, 3, 4}), f32({2, 2}, {5, 6, 7, 8})},
             {{1, 6, 7, 4}});
    list.add("broadcast_by_hand", none, {bools({1, 2}, {1, 0}), f32({2, 1}, {1, 2}), f32({1, 1}, {9})}, {{1, 9, 2, 9}});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool}) {
        std::string const name = nameOf(t);
        list.add("equal_" + name, none, {bools({3, 5, 21}), input(t, {3, 5, 21}), input(t, {3, 5, 21})});
        list.add("row_condition_" + name, none, {bools({3, 1, 1}), input(t, {3, 5, 21}), input(t, {1, 5, 21})});
        list.add("scalar_branch_" + name, none, {bools({2, 300}), input(t, {1, 1}), input(t, {2, 300})});
    }
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8, DataType::kBool})
        for (int64_t n : {1, 7, 15, 17, 31, 33, 63, 65, 129}) { // below and above the vectors' widths
            std::string const name = "_" + std::to_string(n) + "_" + nameOf(t);
            list.add("width" + name, none, {bools({2, n}), input(t, {2, n}), input(t, {2, n})});
            list.add("row_of_each" + name, none, {bools({5, n}), input(t, {5, 1}), input(t, {1, n})});
            list.add("one_condition" + name, none, {bools({4, 1}), input(t, {4, n}), input(t, {4, 1})});
        }
    list.add("long_rows", none, {bools({1, 1, 70, 701}), f32({1, 3, 70, 701}), f32({1, 1, 1, 1})});
    list.add("many_rows", none, {bools({900, 1, 31}), f32({900, 3, 31}), f32({1, 3, 1})});
    list.add("every_axis_differs", none, {bools({1, 3, 4}), f32({2, 1, 4}), f32({2, 3, 1})});
    list.add("scalar", none, {bools({}), f32({}), f32({})});
    list.add("empty", none, {bools({2, 0}), f32({2, 1}), f32({1, 1})});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "select",
        .minInputs = 3,
        .maxInputs = 3,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .isCheap = true,
    };
    return kDef;
}

} // namespace tw::ops::select
