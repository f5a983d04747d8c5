// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/op.h"

#include <cmath>

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::recurrence {

Activation activationOf(Attrs const& a, int d, int i)
{
    size_t const at = size_t(d * functionsOf(a.cell) + i);
    if (!a.functions.empty())
        return {Function(a.functions[at]), a.alpha[at], a.beta[at]};
    return {a.cell != Cell::kRnn && i == 0 ? Function::kSigmoid : Function::kTanh, 0, 0};
}

bool hasDefaultFunctions(Attrs const& a)
{
    for (int d = 0; !a.functions.empty() && d < directionsOf(a); ++d)
        for (int i = 0; i < functionsOf(a.cell); ++i)
            if (activationOf(a, d, i).function !=
                (a.cell != Cell::kRnn && i == 0 ? Function::kSigmoid : Function::kTanh))
                return false;
    return true;
}

Sizes sizesOf(Attrs const& a, Extents const& x)
{
    Sizes s;
    int const last = x.rank - 1;
    s.directions = directionsOf(a);
    s.gates = gatesOf(a.cell);
    s.hidden = a.hidden;
    if (x.rank < 2) // only the run decides the input's sizes: none is known yet
        return s;
    s.inputs = x[last];
    s.steps = x[a.batchFirst ? last - 1 : 0];
    s.batch = a.batchFirst ? x.volume(0, last - 1) : x.volume(1, last);
    int64_t const steps = a.batchFirst ? 1 : s.batch, rows = a.batchFirst ? s.steps : 1, y = s.directions * s.hidden;
    s.xStep = steps * s.inputs;
    s.xRow = rows * s.inputs;
    s.yStep = steps * y;
    s.yRow = rows * y;
    s.stateDir = (a.batchFirst ? 1 : s.batch) * s.hidden;
    s.stateRow = (a.batchFirst ? s.directions : 1) * s.hidden;
    return s;
}

RowAxes rowAxes(ir::Node const& node, bool isOutput, int i)
{
    ir::Value const* const v = isOutput ? node.outputs[size_t(i)] : node.inputs[size_t(i)];
    if (!v || (!isOutput && i != kX && i != kLengths && i != kH0 && i != kC0))
        return {};
    if (!isOutput && i == kLengths)
        return {0, v->rank()};
    return node.attrsAs<Attrs>().batchFirst ? RowAxes{0, v->rank() - 2} : RowAxes{1, v->rank() - 1};
}

namespace {

using ir::Dim;
using ir::Shape;

constexpr int64_t kMostHidden = 1 << 20;

bool agree(Shape const& given, Shape const& wanted)
{
    if (given.size() != wanted.size())
        return false;
    for (size_t i = 0; i < given.size(); ++i)
        if (given[i].isConst() && wanted[i].isConst() && !(given[i] == wanted[i]))
            return false;
    return true;
}

Result<void> checkInput(ir::InferContext& ctx, int i, char const* what, DataType type, Shape const& wanted)
{
    if (!ctx.has(i) || (ctx.type(i) == type && agree(ctx.shape(i), wanted)))
        return {};
    return ctx.error(std::string(what) + " " + ctx.describe(i) + " must be " + nameOf(type) + ir::str(wanted));
}

Result<void> checkFunctions(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    size_t const wanted = size_t(functionsOf(a.cell) * directionsOf(a));
    if (a.functions.size() != a.alpha.size() || a.functions.size() != a.beta.size() ||
        (!a.functions.empty() && a.functions.size() != wanted))
        return ctx.error("{} functions with {} alphas and {} betas: there must be {} of each, or none",
                         a.functions.size(), a.alpha.size(), a.beta.size(), wanted);
    for (int64_t f : a.functions)
        if (f < 0 || f >= kFunctions)
            return ctx.error("function {} is unknown (allowed: 0..{})", f, kFunctions - 1);
    return {};
}

Result<void> checkAttrs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.cell < Cell::kRnn || a.cell > Cell::kGru)
        return ctx.error("cell {} is unknown (allowed: 0..2)", int(a.cell));
    if (a.direction < Direction::kForward || a.direction > Direction::kBoth)
        return ctx.error("direction {} is unknown (allowed: 0..2)", int(a.direction));
    if (a.hidden < 1 || a.hidden > kMostHidden)
        return ctx.error("hidden size {} is out of range (allowed: 1..{})", a.hidden, kMostHidden);
    if (!std::isfinite(a.clip) || a.clip < 0)
        return ctx.error("clip {} must be finite and not negative", a.clip);
    return checkFunctions(ctx);
}

struct Shapes
{
    Shape batch, y, state;
    Dim inputs;
};
Shapes shapesOf(Attrs const& a, Shape const& x)
{
    int64_t const d = directionsOf(a);
    Shapes s;
    s.inputs = x.back();
    s.batch = a.batchFirst ? Shape(x.begin(), x.end() - 2) : Shape(x.begin() + 1, x.end() - 1);
    s.y = x;
    s.y.back() = Dim(d * a.hidden);
    s.state = s.batch;
    s.state.insert(a.batchFirst ? s.state.end() : s.state.begin(), Dim(d));
    s.state.push_back(Dim(a.hidden));
    return s;
}

Result<void> checkInputs(ir::InferContext& ctx, Shapes const& s)
{
    auto const& a = ctx.attrs<Attrs>();
    DataType const type = ctx.type(kX);
    int64_t const d = directionsOf(a), h = a.hidden, gates = gatesOf(a.cell) * h;
    if (!ctx.has(kW) && s.inputs.isConst() && s.inputs.value() != h)
        return ctx.error("{} must have {} elements in its last dimension, the hidden size: there are no input weights",
                         ctx.describe(kX), h);
    TW_TRY(checkInput(ctx, kW, "input weights", type, {Dim(d), Dim(gates), s.inputs}));
    TW_TRY(checkInput(ctx, kR, "recurrent weights", type, {Dim(d), Dim(gates), Dim(h)}));
    TW_TRY(checkInput(ctx, kBias, "bias", type, {Dim(d), Dim(2 * gates)}));
    TW_TRY(checkInput(ctx, kLengths, "sequence lengths", DataType::kInt32, s.batch));
    TW_TRY(checkInput(ctx, kH0, "initial hidden state", type, s.state));
    if (a.cell != Cell::kLstm && (ctx.has(kC0) || ctx.has(kPeepholes)))
        return ctx.error("only LSTM cells have a cell state and peepholes");
    TW_TRY(checkInput(ctx, kC0, "initial cell state", type, s.state));
    return checkInput(ctx, kPeepholes, "peepholes", type, {Dim(d), Dim(3 * h)});
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TW_TRY(checkAttrs(ctx));
    if (!isFloating(ctx.type(kX)))
        return ctx.error(ctx.describe(kX) + " must be f32 or f16");
    if (ctx.rank(kX) < 2 || ctx.rank(kX) > kMaxRank)
        return ctx.error(ctx.describe(kX) + " must have at least 2 dimensions, those of steps and of inputs");
    Shapes const s = shapesOf(a, ctx.shape(kX));
    TW_TRY(checkInputs(ctx, s));
    ctx.output(0, ctx.type(kX), s.y);
    ctx.output(1, ctx.type(kX), s.state);
    if (a.cell == Cell::kLstm)
        ctx.output(2, ctx.type(kX), s.state);
    return {};
}

// Sums of h products of weights stay about 1, so that functions neither saturate nor are straight lines.
void domain(ir::Node const& node, int input, Domain& d)
{
    if (input == kLengths) {
        Shape const& x = node.inputs[kX]->shape;
        Dim const steps = x[node.attrsAs<Attrs>().batchFirst ? x.size() - 2 : 0];
        d = Domain{0, double(steps.isConst() ? steps.value() : 4), true, false};
    } else if (input == kW || input == kR) {
        Dim const n = node.inputs[size_t(input)]->shape.back();
        double const most = n.isConst() && n.value() > 0 ? 2 / std::sqrt(double(n.value())) : 1;
        d = Domain{-most, most};
    }
}

// An error of one step goes into all that follow; where halves are stored, so does its rounding.
Tolerance tolerance(ir::Node const&, DataType t)
{
    double const stored = 4 * Tolerance::forType(t).relative; // states are rounded in each step
    return isNarrowFloat(t) ? Tolerance{stored, stored} : Tolerance{2e-5, 2e-5};
}

double operations(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    Sizes const s = sizesOf(node.attrsAs<Attrs>(), in[kX].dims);
    double const columns = double(s.directions * s.gates * s.hidden);
    return 2 * double(s.steps * s.batch) * columns *
           double(s.hidden + (in.size() > kW && in[kW].dims.rank > 0 ? s.inputs : 0));
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "recurrence",
    TW_OP_PARTS(Attrs),
    .inputs = {2, kInputs},
    .domain = domain,
    .tolerance = tolerance,
    .operations = operations,
};

} // namespace tw::ops::recurrence
