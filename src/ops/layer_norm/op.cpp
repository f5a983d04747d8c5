// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/op.h"

#include <cmath>

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::layer_norm {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (!isFloating(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32 or f16");
    if (a.axis < 0 || a.axis >= ctx.rank(0))
        return ctx.error("axis " + std::to_string(a.axis) + " is out of range for " + ctx.describe(0) + " of rank " +
                         std::to_string(ctx.rank(0)) + " (allowed: 0.." + std::to_string(ctx.rank(0) - 1) + ")");
    if (!std::isfinite(a.epsilon) || a.epsilon < 0)
        return ctx.error("epsilon " + std::to_string(a.epsilon) + " must be finite and not negative");
    ir::Shape const& x = ctx.shape(0);
    ir::Dim const n = volume(ir::Shape(x.begin() + a.axis, x.end()));
    if (ctx.inputCount() != a.inputCount())
        return ctx.error(std::to_string(ctx.inputCount()) + " inputs, but has_gamma and has_beta ask for " +
                         std::to_string(a.inputCount()));
    for (int i = 1; i < ctx.inputCount(); ++i)
        if (!ctx.has(i) || ctx.type(i) != ctx.type(0) || ctx.rank(i) != 1 ||
            (n.isConst() && ctx.shape(i)[0].isConst() && !(n == ctx.shape(i)[0])))
            return ctx.error(std::string(i == a.gammaInput() ? "gamma " : "beta ") +
                             (ctx.has(i) ? ctx.describe(i) : "") + " must be " + nameOf(ctx.type(0)) + "[" + n.str() +
                             "]");
    ctx.output(0, ctx.type(0), x);
    return {};
}

[[gnu::cold]] void cases(CaseList& list)
{
    auto add = [&](std::string const& name, int64_t axis, double epsilon, DataType t, Extents const& e) {
        Attrs a;
        a.axis = axis;
        a.epsilon = epsilon;
        int64_t const n = e.volume(int(axis), e.rank);
        list.add(name, a, {input(t, e), constant(t, {n}), constant(t, {n})});
    };
    Attrs a;
    a.axis = 1;
    a.epsilon = 2; // (1 3 1 -1): mean 1, variance 2, so that the divisor is 2
    list.add("by_hand", a,
             {f32({2, 4}, {1, 3, 1, -1, 0, 0, 0, 0}), constant(DataType::kFloat, {4}, {1, 1, 2, 2}),
              constant(DataType::kFloat, {4}, {0, 1, 0, 1})},
             {{0, 2, 0, -1, 0, 1, 0, 1}});
    for (int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 129, 768, 1000})
        add("row_" + std::to_string(n), 1, n == 1 ? 0.5 : 1e-5, DataType::kFloat, {3, n});
    for (int parts = 0; parts < 3; ++parts) {
        Attrs some;
        some.axis = 1;
        some.hasGamma = parts & 1;
        some.hasBeta = parts & 2;
        std::vector<CaseInput> in{f32({3, 37})};
        if (parts > 0)
            in.push_back(constant(DataType::kFloat, {37}));
        list.add("parts_" + std::to_string(parts), some, std::move(in));
    }
    add("two_axes", 1, 1e-3, DataType::kFloat, {3, 5, 7});
    add("all", 0, 1e-3, DataType::kFloat, {3, 4});
    add("many_rows", 2, 1e-12, DataType::kFloat, {2, 33, 40});
    add("half", 2, 1e-3, DataType::kHalf, {2, 3, 40});
    for (int64_t n : {8, 250, 768, 1024, 3000})
        add("half_" + std::to_string(n), 1, 1e-5, DataType::kHalf, {n == 768 ? 37 : 2, n});
    add("row_2100", 1, 1e-5, DataType::kFloat, {2, 2100});
    add("row_9000", 1, 1e-5, DataType::kFloat, {2, 9000});
    // Rows in chunks: below, at and above one, a tail that is no whole pack.
    for (DataType type : {DataType::kFloat, DataType::kHalf})
        for (int64_t n : {2048, 4096, 4099, 8192, 20000, 40960})
            add(std::string(nameOf(type)) + "_long_" + std::to_string(n), 1, 1e-5, type, {3, n});
    Attrs groups; // as a group norm: no gamma, no beta
    groups.axis = 2;
    groups.hasGamma = groups.hasBeta = false;
    list.add("groups", groups, {input(DataType::kHalf, {2, 8, 10, 32, 32})});
    add("no_rows", 1, 1e-5, DataType::kFloat, {0, 4});
    add("no_columns", 1, 1e-5, DataType::kFloat, {4, 0});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "layer_norm",
        .minInputs = 1,
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

} // namespace tw::ops::layer_norm
