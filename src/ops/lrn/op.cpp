// SPDX-License-Identifier: Apache-2.0
#include "ops/lrn/op.h"

#include "tactic/layer_facts.h"
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
        return ctx.error("window {} must be odd and in 1..15", a.window);
    if (!(a.alpha >= -1e20f && a.alpha <= 1e20f))
        return ctx.error("alpha {} must be in [-1e20, 1e20]", a.alpha);
    if (!(a.beta >= 0.01f && a.beta <= 1e5f))
        return ctx.error("beta {} must be in [0.01, 1e5]", a.beta);
    if (!(a.k >= 1e-5f && a.k <= 1e10f))
        return ctx.error("k {} must be in [1e-5, 1e10]", a.k);
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "lrn",
    TW_OP_PARTS(Attrs),
    .inspect = [](LayerFacts& facts) { facts.kind("LRN"); },
};

} // namespace tw::ops::lrn
