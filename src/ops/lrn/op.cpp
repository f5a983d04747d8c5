// SPDX-License-Identifier: Apache-2.0
#include "ops/lrn/op.h"

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::lrn {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (!isFloating(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32 or f16");
    if (ctx.rank(0) < 3)
        return ctx.error(ctx.describe(0) + " must have at least 3 dimensions");
    if (a.window < 1 || a.window > 15 || a.window % 2 == 0)
        return ctx.error("window " + std::to_string(a.window) + " must be odd and in 1..15");
    if (!(a.alpha >= -1e20f && a.alpha <= 1e20f))
        return ctx.error("alpha " + std::to_string(a.alpha) + " must be in [-1e20, 1e20]");
    if (!(a.beta >= 0.01f && a.beta <= 1e5f))
        return ctx.error("beta " + std::to_string(a.beta) + " must be in [0.01, 1e5]");
    if (!(a.k >= 1e-5f && a.k <= 1e10f))
        return ctx.error("k " + std::to_string(a.k) + " must be in [1e-5, 1e10]");
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

[[gnu::cold]] void cases(CaseList& list)
{
    auto lrn = [&](std::string name, int64_t window, float alpha, float beta, float k, CaseInput x,
                   std::vector<std::vector<double>> expected = {}) {
        Attrs a;
        a.window = window;
        a.alpha = alpha;
        a.beta = beta;
        a.k = k;
        list.add(std::move(name), a, {std::move(x)}, std::move(expected));
    };
    // Squares 1, 4, 9; windows of 3 clipped at the ends sum to 5, 14, 13; alpha / W = 1.
    lrn("by_hand", 3, 3, 1, 1, f32({3, 1, 1}, {1, 2, 3}), {{1.0 / 6, 2.0 / 15, 3.0 / 14}});
    lrn("square_root_by_hand", 1, 1, 0.5f, 16, f32({1, 1, 2}, {3, -3}), {{0.6, -0.6}});
    lrn("usual", 5, 1e-4f, 0.75f, 1, f32({2, 9, 5, 5}));
    lrn("strong", 5, 2, 0.75f, 1.5f, f32({2, 9, 17, 16}));
    lrn("beta_0.6", 3, 2, 0.6f, 0.5f, f32({2, 4, 3, 3}));
    lrn("window_beyond_channels", 15, 3, 0.75f, 1, f32({1, 4, 3, 3}));
    lrn("window_1", 1, 3, 2, 1, f32({1, 4, 3, 3}));
    lrn("negative_alpha", 3, -0.5f, 1.5f, 2, f32({1, 4, 3, 3}));
    lrn("rank_5", 3, 1, 0.75f, 1, f32({2, 2, 4, 3, 3}));
    lrn("half", 5, 2, 0.75f, 1, input(DataType::kHalf, {1, 8, 4, 4}));
    lrn("empty", 3, 1, 0.75f, 1, f32({2, 0, 3, 3}));
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "lrn",
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
    };
    return kDef;
}

} // namespace tw::ops::lrn
