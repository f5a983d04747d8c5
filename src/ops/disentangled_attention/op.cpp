// SPDX-License-Identifier: Apache-2.0
#include "ops/disentangled_attention/op.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tactic/registry.h"

namespace tw::ops::disentangled_attention {

int64_t positionOf(int64_t distance, int64_t span, int64_t length)
{
    int64_t const mid = span / 2, r = std::abs(distance);
    int64_t bucket = r;
    if (r > mid && mid > 0) {
        double const ratio = std::log(double(r) / double(mid)) * double(mid - 1) /
                             std::log(double(length - 1) / double(mid)) * (1 - 1e-7);
        bucket = int64_t(std::ceil(ratio)) + mid;
    }
    return std::clamp<int64_t>((distance < 0 ? -bucket : bucket) + span, 0, 2 * span - 1);
}

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.span < 1 || a.span > kMostSpan)
        return ctx.error("span is {} (allowed: 1 to {})", a.span, kMostSpan);
    for (int i = 0; i < 3; ++i)
        if (!isFloating(ctx.type(i)) || ctx.type(i) != ctx.type(0) || ctx.shape(i).size() != 3)
            return ctx.error("inputs " + ctx.describe(0) + ", " + ctx.describe(1) + " and " + ctx.describe(2) +
                             " must be f32 or f16, of one type, and have three dimensions");
    ir::Shape const& x = ctx.shape(0);
    auto const mayAgree = [](ir::Dim const& p, ir::Dim const& q) {
        return !p.isConst() || !q.isConst() || p.value() == q.value();
    };
    bool agree = mayAgree(x[1], x[2]);
    for (int i = 1; i < 3; ++i)
        agree = agree && mayAgree(x[0], ctx.shape(i)[0]) && mayAgree(x[1], ctx.shape(i)[1]) &&
                mayAgree(ctx.shape(i)[2], 2 * a.span);
    if (!agree)
        return ctx.error("inputs must be [B, S, S] and twice [B, S, {}]; they are {}, {} and {}", 2 * a.span,
                         ctx.describe(0), ctx.describe(1), ctx.describe(2));
    ctx.output(0, ctx.type(0), x);
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "disentangled_attention",
    TW_OP_PARTS(Attrs),
    .inputs = {3, 3},
};

} // namespace tw::ops::disentangled_attention
