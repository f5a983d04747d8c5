// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/op.h"

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
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
    };
    return kDef;
}

} // namespace tw::ops::layer_norm
