// SPDX-License-Identifier: Apache-2.0
#include "ops/scale/op.h"

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::scale {

namespace {

char const* const kCoefficients[] = {"data", "scale", "shift", "power"};

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (int(a.mode) < 0 || int(a.mode) > 2)
        return ctx.error("there is no scale mode " + std::to_string(int(a.mode)) + " (allowed: 0..2)");
    ir::Shape const& x = ctx.shape(0);
    if (x.empty())
        return ctx.error(ctx.describe(0) + " must have at least one dimension");
    if (a.mode != Mode::kUniform && (a.channelAxis < 0 || a.channelAxis >= ctx.rank(0)))
        return ctx.error("channel axis " + std::to_string(a.channelAxis) + " is out of range for " + ctx.describe(0) +
                         " (allowed: 0.." + std::to_string(ctx.rank(0) - 1) + ")");
    DataType const from = ctx.type(0);
    if (!isFloating(from) && from != DataType::kInt8)
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8; convert it with an identity layer");
    if (a.outputType != Attrs::kSameType && a.outputType != int32_t(from) && a.outputType != int32_t(DataType::kInt8))
        return ctx.error("output type " + std::to_string(a.outputType) + " is not possible: " + ctx.describe(0) +
                         " gives its own type or i8");
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
                 : a.mode == Mode::kChannel ? "channel mode on axis " + std::to_string(a.channelAxis)
                                            : "elementwise mode from axis " + std::to_string(a.channelAxis)) +
                " of " + ctx.describe(0) + " needs " + want.str());
    }
    ctx.output(0, a.outputType == Attrs::kSameType ? from : DataType(a.outputType), x);
    return {};
}

void domain(ir::Node const& node, int i, Domain& d)
{
    bool const power = node.inputs.size() > 3 && node.inputs[3];
    if (i == 0 && node.inputs[0]->type == DataType::kInt8)
        d = Domain{power ? 0.0 : -128.0, 127, true, false};
    else if (power) // keeps the base above 0
        d = i == 2 ? Domain{0.5, 1, false, false} : i == 3 ? Domain{-2, 2, false, false} : Domain{0.2, 2, false, false};
    else
        d = Domain{-3, 3, false, false};
}

[[gnu::cold]] void cases(CaseList& list)
{
    auto weights = [](Extents const& e, std::vector<double> v = {}) {
        return constant(DataType::kFloat, e, std::move(v));
    };
    list.add("uniform_by_hand", Attrs(Mode::kUniform),
             {f32({1, 1, 1, 3}, {1, 2, -1}), weights({1}, {2}), weights({1}, {1}), weights({1}, {2})}, {{9, 25, 1}});
    list.add("channel_by_hand", Attrs(Mode::kChannel),
             {f32({1, 2, 1, 2}, {1, 2, 3, 4}), weights({2}, {2, 3}), weights({2}, {10, 20})}, {{12, 14, 29, 32}});
    list.add("elementwise_by_hand", Attrs(Mode::kElementwise),
             {f32({2, 2, 1, 1}, {1, 2, 3, 4}), weights({2}, {5, 6}), weights({2}, {1, -1})}, {{6, 11, 16, 23}});
    list.add("nothing_by_hand", Attrs(Mode::kUniform), {f32({1, 1, 1, 2}, {1, -2})}, {{1, -2}});
    list.add("quantize_by_hand", Attrs(Mode::kUniform, 1, int32_t(DataType::kInt8)),
             {f32({1, 1, 1, 6}, {0.25, 0.75, -0.25, 1.25, 100, -100}), weights({1}, {2})}, {{0, 2, 0, 2, 127, -128}});
    list.add("i8_by_hand", Attrs(Mode::kUniform),
             {input(DataType::kInt8, {1, 1, 1, 4}, {1, 3, 100, -128}), weights({1}, {0.5}), weights({1}, {0})},
             {{0, 2, 50, -64}});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        for (Mode m : {Mode::kUniform, Mode::kChannel, Mode::kElementwise}) {
            std::string const name = std::string(m == Mode::kUniform   ? "uniform_"
                                                 : m == Mode::kChannel ? "channel_"
                                                                       : "elementwise_") +
                                     nameOf(t);
            Extents const x{2, 3, 5, 67};
            Extents const c{m == Mode::kUniform ? 1 : m == Mode::kChannel ? 3 : 3 * 5 * 67};
            list.add(name, Attrs(m), {input(t, x), weights(c), weights(c)});
            list.add(name + "_power", Attrs(m), {input(t, x), weights(c), weights(c), weights(c)});
            list.add(name + "_scale_only", Attrs(m), {input(t, x), weights(c)});
            list.add(name + "_shift_only", Attrs(m), {input(t, x), absent(), weights(c)});
        }
    }
    list.add("last_axis", Attrs(Mode::kChannel, 3), {f32({2, 3, 4, 300}), weights({300}), weights({300})});
    list.add("first_axis", Attrs(Mode::kChannel, 0), {f32({3, 4, 5, 6}), weights({3}), weights({3})});
    list.add("half_image", Attrs(Mode::kChannel),
             {input(DataType::kHalf, {2, 24, 4, 5}), constant(DataType::kHalf, {24}), constant(DataType::kHalf, {24})});
    list.add("half_weights", Attrs(Mode::kChannel),
             {input(DataType::kHalf, {2, 3, 4, 5}), constant(DataType::kHalf, {3}), constant(DataType::kHalf, {3})});
    list.add("quantize", Attrs(Mode::kChannel, 1, int32_t(DataType::kInt8)),
             {input(DataType::kHalf, {2, 3, 4, 50}), weights({3}, {20, 30, 100}), weights({3})});
    list.add("input_weights", Attrs(Mode::kChannel), {f32({2, 3, 4, 5}), f32({1, 3, 1, 1}), f32({3})});
    list.add("empty", Attrs(Mode::kChannel), {f32({0, 3, 4, 5}), weights({3})});
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

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "scale",
        .maxInputs = 4,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .domain = domain,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .isElementwise = true,
        .isCheap = true,
    };
    return kDef;
}

} // namespace tw::ops::scale
