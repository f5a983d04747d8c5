// SPDX-License-Identifier: Apache-2.0
#include "ops/topk/op.h"

#include <limits>

#include "ops/cases.h"
#include "ops/registry.h"

namespace tw::ops::topk {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const kind = int(a.kind), rank = ctx.rank(0);
    if (kind != int(Kind::kMax) && kind != int(Kind::kMin))
        return ctx.error("top-k operation " + std::to_string(kind) + " does not exist (allowed: 0, 1)");
    if (!isFloating(ctx.type(0)) && ctx.type(0) != DataType::kInt8)
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8");
    if (a.axis < 0 || a.axis >= rank)
        return ctx.error("axis " + std::to_string(a.axis) + " is out of range for " + ctx.describe(0) + " of rank " +
                         std::to_string(rank));
    if (a.axis < rank - 4)
        return ctx.error("axis " + std::to_string(a.axis) + " of " + ctx.describe(0) +
                         " must be one of the last four; transpose the input");
    if (a.k < 1 || a.k > kMaxK)
        return ctx.error("k " + std::to_string(a.k) + " is out of range (allowed: 1.." + std::to_string(kMaxK) + ")");
    ir::Shape y = ctx.shape(0);
    ir::Dim& d = y[size_t(a.axis)];
    if (d.isConst() && d.value() < a.k)
        return ctx.error("k " + std::to_string(a.k) + " is above the " + d.str() + " elements of axis " +
                         std::to_string(a.axis) + " of " + ctx.describe(0));
    d = a.k;
    ctx.output(0, ctx.type(0), y);
    ctx.output(1, DataType::kInt32, std::move(y));
    return {};
}

[[gnu::cold]] void cases(CaseList& list)
{
    double const inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    auto topk = [&](std::string name, Kind kind, int64_t k, int64_t axis, CaseInput x,
                    std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.kind = kind;
        a.k = k;
        a.axis = axis;
        list.add(std::move(name), a, {std::move(x)}, std::move(expected));
    };
    CaseInput const ties = f32({6}, {3, 1, 3, 2, 1, 3});
    topk("max_ties_by_hand", Kind::kMax, 4, 0, ties, {{3, 3, 3, 2}, {0, 2, 5, 3}});
    topk("min_ties_by_hand", Kind::kMin, 4, 0, ties, {{1, 1, 2, 3}, {1, 4, 3, 0}});
    topk("zeros_are_equal", Kind::kMax, 2, 0, f32({3}, {-1, -0.0, 0}), {{0, 0}, {1, 2}});
    CaseInput const odd = f32({5}, {-inf, nan, inf, nan, 0});
    topk("max_nan", Kind::kMax, 4, 0, odd, {{nan, nan, inf, 0}, {1, 3, 2, 4}});
    topk("min_nan", Kind::kMin, 4, 0, odd, {{-inf, 0, inf, nan}, {0, 4, 2, 1}});
    topk("columns_by_hand", Kind::kMax, 1, 0, f32({2, 3}, {1, 5, 3, 4, 2, 6}), {{4, 5, 6}, {1, 0, 1}});
    for (auto [kindName, kind] : {std::pair{"max", Kind::kMax}, std::pair{"min", Kind::kMin}}) {
        std::string const name = kindName;
        topk(name + "_one", kind, 1, 1, f32({3, 17}));
        topk(name + "_all", kind, 9, 1, f32({3, 9}));
        topk(name + "_middle_axis", kind, 3, 1, f32({2, 7, 5}));
        topk(name + "_first_of_4", kind, 2, 0, f32({4, 2, 3, 2}));
        topk(name + "_rank_8", kind, 2, 4, f32({1, 2, 1, 1, 3, 2, 1, 2}));
        topk(name + "_most", kind, kMaxK, 0, f32({5000}));
        topk(name + "_f16", kind, 5, 1, input(DataType::kHalf, {3, 30}));
        topk(name + "_i8_many_ties", kind, 7, 1, input(DataType::kInt8, {3, 30}));
        topk(name + "_empty_batch", kind, 2, 1, f32({0, 5}));
    }
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "topk",
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
    };
    return kDef;
}

} // namespace tw::ops::topk
