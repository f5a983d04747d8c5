// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/op.h"

#include <cmath>

#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::resize {

namespace {

constexpr int64_t kMaxSize = int64_t(1) << 30; // of an axis: coordinates are fractions in int64
constexpr int64_t kMaxTerm = int64_t(1) << 24; // of a scale's fraction

// How many of the innermost axes may change their size.
int innermostAxes(Mode mode)
{
    return mode == Mode::kNearest ? kMaxRank : mode == Mode::kLinear ? 3 : 2;
}

Result<void> checkAttrs(ir::InferContext& ctx, Attrs const& a)
{
    auto number = [&](char const* what, auto value, int count) -> Result<void> {
        if (int(value) < 0 || int(value) >= count)
            return ctx.error("{} {} does not exist (allowed: 0..{})", what, int(value), count - 1);
        return {};
    };
    TW_TRY(number("resize mode", a.mode, 3));
    TW_TRY(number("coordinate transformation", a.coordinates, 3));
    TW_TRY(number("selector for a single pixel", a.selector, 2));
    TW_TRY(number("nearest rounding", a.rounding, 4));
    if (!std::isfinite(a.cubicCoeff))
        return ctx.error("the cubic coefficient must be finite");
    size_t const rank = size_t(ctx.rank(0));
    if (int(!a.outputDims.empty()) + int(!a.scales.empty()) + int(ctx.has(1)) != 1)
        return ctx.error("needs exactly one of output dimensions, scales and input 1");
    for (size_t count : {a.outputDims.size(), a.scales.size()})
        if (count != 0 && count != rank)
            return ctx.error("got {} output dimensions or scales, {} needs {}", count, ctx.describe(0), rank);
    if (ctx.has(1) && (ctx.type(1) != DataType::kInt32 || ctx.rank(1) != 1 || !ctx.shape(1)[0].is(int64_t(rank))))
        return ctx.error("output dimensions {} must be i32[{}]", ctx.describe(1), rank);
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const rank = ctx.rank(0);
    if (rank < 1)
        return ctx.error(ctx.describe(0) + " must have at least 1 dimension");
    if (!isReal(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32, f16 or i8");
    TW_TRY(checkAttrs(ctx, a));
    auto const* content = ctx.content(1);
    if (ctx.has(1) && !content && ctx.concrete())
        return ctx.error("the elements of " + ctx.describe(1) + " are not known");
    ir::Shape y;
    for (int i = 0; i < rank; ++i) {
        ir::Dim const& in = ctx.shape(0)[i];
        std::string const where = fmt::format("axis {} of {}: ", i, ctx.describe(0));
        bool const mayChange = i >= rank - innermostAxes(a.mode);
        bool changes = false;
        ir::Dim out;
        if (!a.scales.empty()) {
            Fraction f;
            if (!fractionOf(a.scales[i], f))
                return ctx.error("{}scale {} must be positive and a fraction of numbers up to {}", where, a.scales[i],
                                 kMaxTerm);
            changes = f.over != f.under;
            out = floorDiv(in * f.over, f.under);
        } else {
            if (!a.outputDims.empty())
                out = a.outputDims[i] == -1 ? in : ir::Dim(a.outputDims[i]);
            else if (content)
                out = (*content)[i];
            else
                out = mayChange ? ctx.freshSymbol(ir::Range{0, kMaxSize}) : in;
            changes = in.isConst() && out.isConst() && !(in == out); // else the run-time check decides
        }
        if (changes && !mayChange)
            return ctx.error("{}{} resize changes the last {} axes only, not {} to {}", where,
                             a.mode == Mode::kLinear ? "linear" : "cubic", innermostAxes(a.mode), in.str(), out.str());
        for (ir::Dim const* d : {&in, static_cast<ir::Dim const*>(&out)})
            if (d->isConst() && (d->value() < 0 || d->value() > kMaxSize))
                return ctx.error("{}size {} is out of range (allowed: 0..{})", where, d->str(), kMaxSize);
        if (in.is(0) && out.isConst() && !out.is(0))
            return ctx.error(where + "there is nothing to resize to " + out.str() + " elements");
        y.push_back(std::move(out));
    }
    ctx.output(0, ctx.type(0), std::move(y));
    return {};
}

void domain(ir::Node const& node, int input, Domain& d)
{
    if (input == 0 && isQuantized(node.inputs[0]->type))
        d = Domain{-100, 100, true, false};
}

} // namespace

// The first continued-fraction convergent that rounds to the scale's float.
bool fractionOf(double scale, Fraction& out)
{
    float const want = static_cast<float>(scale);
    if (!(want > 0) || !std::isfinite(want))
        return false;
    int64_t over = 1, under = 0, lastOver = 0, lastUnder = 1;
    double rest = want;
    for (int step = 0; step < 64; ++step) {
        double const whole = std::floor(rest);
        if (whole > double(kMaxTerm))
            return false;
        int64_t const n = int64_t(whole), nextOver = n * over + lastOver, nextUnder = n * under + lastUnder;
        if (nextOver > kMaxTerm || nextUnder > kMaxTerm)
            return false;
        lastOver = over;
        lastUnder = under;
        over = nextOver;
        under = nextUnder;
        if (over > 0 && static_cast<float>(double(over) / double(under)) == want) {
            out = Fraction{over, under};
            return true;
        }
        if (rest == whole)
            return false;
        rest = 1 / (rest - whole);
    }
    return false;
}

Axis axisOf(Attrs const& a, Extents const& x, Extents const& y, int axis)
{
    Axis r{x[axis], y[axis], Fraction{std::max<int64_t>(y[axis], 1), std::max<int64_t>(x[axis], 1)}};
    if (!a.scales.empty())
        fractionOf(a.scales[axis], r.scale); // infer has checked it
    return r;
}

namespace {

// As the layer was given them, else by the dimensions; -1 where these are not known.
std::vector<double> scalesOf(LayerFacts const& facts, Attrs const& a)
{
    if (!a.scales.empty())
        return a.scales;
    std::vector<int64_t> const x = numbersOf(facts.input(0)->shape), y = numbersOf(facts.node.outputs[0]->shape);
    std::vector<double> scales;
    for (size_t i = 0; i < x.size(); ++i)
        scales.push_back(x[i] > 0 && y[i] >= 0 ? double(y[i]) / double(x[i]) : -1);
    return scales;
}

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    constexpr char const* kModes[] = {"kNEAREST", "kLINEAR", "kCUBIC"};
    constexpr char const* kRoundings[] = {"kHALF_UP", "kHALF_DOWN", "kFLOOR", "kCEIL"};
    constexpr char const* kCoordinates[] = {"kALIGN_CORNERS", "kASYMMETRIC", "kHALF_PIXEL"};
    facts.kind("Resize");
    facts.add("ResizeMode", kModes[int(a.mode)]);
    facts.add("ResizeScales", scalesOf(facts, a));
    facts.add("NNRounding", kRoundings[int(a.rounding)]);
    facts.add("Start", std::vector<int64_t>(facts.input(0)->shape.size(), 0));
    facts.add("CoordTransform", kCoordinates[int(a.coordinates)]);
    facts.add("ResizeSelector", a.selector == Selector::kFormula ? "kFORMULA" : "kUPPER");
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "resize",
    TW_OP_PARTS(Attrs),
    .inputs = {1, 2},
    .isShapeInput = [](ir::Node const&, size_t i) { return i == 1; },
    .domain = domain,
    .isNonNegative =
        [](ir::Node const& n, ir::Signs& signs) { // cubic curves swing beyond their points
            return n.attrsAs<Attrs>().mode != Mode::kCubic && ir::ofFirstInput(n, signs);
        },
    .inspect = inspect,
};

} // namespace tw::ops::resize
