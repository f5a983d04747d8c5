// SPDX-License-Identifier: Apache-2.0
#include "ops/scale/op.h"

#include <iterator>

#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::scale {

namespace {

char const* const kCoefficients[] = {"data", "scale", "shift", "power"};

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (int(a.mode) < 0 || int(a.mode) > 2)
        return ctx.error("there is no scale mode {} (allowed: 0..2)", int(a.mode));
    ir::Shape const& x = ctx.shape(0);
    if (x.empty())
        return ctx.error(ctx.describe(0) + " must have at least one dimension");
    if (a.mode != Mode::kUniform && (a.channelAxis < 0 || a.channelAxis >= ctx.rank(0)))
        return ctx.error("channel axis {} is out of range for {} (allowed: 0..{})", a.channelAxis, ctx.describe(0),
                         ctx.rank(0) - 1);
    DataType const from = ctx.type(0);
    if (!isReal(from))
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8; convert it with an identity layer");
    if (a.outputType != Attrs::kSameType && a.outputType != int32_t(from) && a.outputType != int32_t(DataType::kInt8))
        return ctx.error("output type {} is not possible: {} gives its own type or i8", a.outputType, ctx.describe(0));
    ir::Dim want = 1;
    if (a.mode == Mode::kChannel)
        want = x[size_t(a.channelAxis)];
    else if (a.mode == Mode::kElementwise)
        want = ir::volume(ir::Shape(x.begin() + a.channelAxis, x.end()));
    for (int i = 1; i < 4; ++i) {
        if (!ctx.has(i))
            continue;
        if (!isFloating(ctx.type(i)))
            return ctx.error(std::string(kCoefficients[i]) + ", " + ctx.describe(i) + ", must be f32 or f16");
        ir::Dim const count = ir::volume(ctx.shape(i));
        if (count.isConst() && want.isConst() && !(count == want))
            return ctx.error(
                std::string(kCoefficients[i]) + ", " + ctx.describe(i) + ", has " + count.str() + " elements; " +
                (a.mode == Mode::kUniform   ? "uniform mode"
                 : a.mode == Mode::kChannel ? fmt::format("channel mode on axis {}", a.channelAxis)
                                            : fmt::format("elementwise mode from axis {}", a.channelAxis)) +
                " of " + ctx.describe(0) + " needs " + want.str());
    }
    ctx.output(0, a.outputType == Attrs::kSameType ? from : DataType(a.outputType), x);
    return {};
}

void domain(ir::Node const& node, int i, Domain& d)
{
    bool const power = node.inputs.size() > 3 && node.inputs[3];
    if (i == 0 && isQuantized(node.inputs[0]->type))
        d = Domain{power ? 0.0 : -128.0, 127, true, false};
    else if (power) // keeps the base above 0
        d = i == 2 ? Domain{0.5, 1, false, false} : i == 3 ? Domain{-2, 2, false, false} : Domain{0.2, 2, false, false};
    else
        d = Domain{-3, 3, false, false};
}

} // namespace

Geometry geometryOf(Attrs const& a, Extents const& x)
{
    Geometry g;
    if (a.mode == Mode::kUniform) {
        g.inner = x.volume();
        return g;
    }
    g.outer = x.volume(0, a.channelAxis);
    g.coefficients = x[a.channelAxis];
    g.inner = x.volume(a.channelAxis + 1, x.rank);
    if (a.mode == Mode::kElementwise) {
        g.coefficients *= g.inner;
        g.inner = 1;
    }
    return g;
}

namespace {

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    constexpr char const* kModes[] = {"UNIFORM", "CHANNEL", "ELEMENTWISE"};
    constexpr char const* kCoefficients[] = {"Scale", "Shift", "Power"}; // inputs 1 to 3
    facts.kind("Scale");
    facts.add("Mode", kModes[int(a.mode)]);
    for (size_t i = 0; i < std::size(kCoefficients); ++i)
        if (facts.input(i + 1))
            facts.addWeights(kCoefficients[i], facts.input(i + 1));
        else
            facts.add(kCoefficients[i], WeightsFact());
    facts.add("Activation", "NONE");
    facts.add("ChannelAxis", int64_t(a.channelAxis));
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "scale",
    TW_OP_PARTS(Attrs),
    .inputs = {1, 4},
    .domain = domain,
    .inspect = inspect,
    .isElementwise = true,
    .isCheap = true,
};

} // namespace tw::ops::scale
