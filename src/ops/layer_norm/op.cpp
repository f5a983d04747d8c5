// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/op.h"

#include <cmath>

#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::layer_norm {

namespace {

// Why the sets do not exist; empty: they do.
std::string whySets(Attrs const& a, ir::Shape const& x)
{
    int64_t const rank = int64_t(x.size());
    if (a.kept < 0 || a.kept >> rank != 0 || (a.kept & ((int64_t(2) << a.axis) - 1)) != 0)
        return fmt::format("kept {} must name dimensions behind axis {} only, below {}", a.kept, a.axis, rank);
    if (a.channel >= rank)
        return fmt::format("channel {} is out of range (allowed: -1..{})", a.channel, rank - 1);
    if (a.groups == 1)
        return {};
    if (a.groups < 1 || a.channel < 0 || !a.isNormalized(int(a.channel)) || rank >= kMaxRank)
        return fmt::format("{} groups need a channel among the normalized dimensions, of at most {}", a.groups,
                           kMaxRank - 1);
    ir::Dim const& channels = x[size_t(a.channel)];
    if (channels.isConst() && channels.value() % a.groups != 0)
        return fmt::format("{} channels cannot be cut into {} groups", channels.str(), a.groups);
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (!isFloating(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32 or f16");
    if (a.axis < 0 || a.axis >= ctx.rank(0))
        return ctx.error("axis {} is out of range for {} of rank {} (allowed: 0..{})", a.axis, ctx.describe(0),
                         ctx.rank(0), ctx.rank(0) - 1);
    if (!std::isfinite(a.epsilon) || a.epsilon < 0)
        return ctx.error("epsilon {} must be finite and not negative", a.epsilon);
    ir::Shape const& x = ctx.shape(0);
    for (std::string const& why : {whySets(a, x), a.activation.check()})
        if (!why.empty())
            return ctx.error(why);
    ir::Dim n = a.channel >= 0 ? x[size_t(a.channel)] : ir::Dim(1);
    for (int i = 0; a.channel < 0 && i < ctx.rank(0); ++i)
        n = a.isNormalized(i) ? n * x[size_t(i)] : n;
    if (ctx.inputCount() != a.inputCount())
        return ctx.error("{} inputs, but has_gamma and has_beta ask for {}", ctx.inputCount(), a.inputCount());
    if (a.integers < 0 || a.integers > 2)
        return ctx.error("integers {} is out of range (allowed: 0..2)", a.integers);
    if (int const i = a.scaleInput(); i >= 0 && (!ctx.has(i) || !isFullFloat(ctx.type(i)) || ctx.rank(i) > 1 ||
                                                 (ctx.rank(i) == 1 && !ctx.shape(i)[0].is(1))))
        return ctx.error("scale " + (ctx.has(i) ? ctx.describe(i) : "") + " must be one f32");
    for (int i = 1; i < 1 + a.hasGamma + a.hasBeta; ++i)
        if (!ctx.has(i) || ctx.type(i) != ctx.type(0) || ctx.rank(i) != 1 ||
            (n.isConst() && ctx.shape(i)[0].isConst() && !(n == ctx.shape(i)[0])))
            return ctx.error(std::string(i == a.gammaInput() ? "gamma " : "beta ") +
                             (ctx.has(i) ? ctx.describe(i) : "") + " must be " + nameOf(ctx.type(0)) + "[" + n.str() +
                             "]");
    ctx.output(0, a.keepsFloats() ? ctx.type(0) : DataType::kInt8, x);
    if (a.integers == 2)
        ctx.output(1, DataType::kInt8, x);
    return {};
}

void domain(ir::Node const& node, int input, Domain& d)
{
    if (input == node.attrsAs<Attrs>().scaleInput())
        d = {0.01, 0.05};
}

Tolerance tolerance(ir::Node const&, DataType type)
{
    Tolerance t = Tolerance::forType(type);
    t.integers = 1;
    return t;
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "layer_norm",
    TW_OP_PARTS(Attrs),
    .inputs = {1, 4},
    .domain = domain,
    .tolerance = tolerance,
    // 8.5 gives such a subgraph to another compiler, whose layers have no kind of their own.
    .inspect = [](LayerFacts& facts) { facts.kind("Myelin", ""); },
};

} // namespace tw::ops::layer_norm
