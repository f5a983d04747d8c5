// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/op.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "families/elementwise/activate.h"
#include "families/elementwise/layer_facts.h"
#include "ops/pointwise/jit_program.h"
#include "tactic/broadcast.h"
#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::pointwise {

namespace {

// Numbers that fit a program: what is far away must not wrap into something known.
std::string checkNumbers(Attrs const& a, int inputs)
{
    size_t const steps = a.steps.size() / kNumbersOfStep;
    if (a.steps.size() % kNumbersOfStep != 0 || a.parameters.size() != steps * kParametersOfStep ||
        a.inputs.size() != size_t(inputs) * kNumbersOfInput)
        return "the lists of steps (" + std::to_string(a.steps.size()) + " numbers), parameters (" +
               std::to_string(a.parameters.size()) + ") and inputs (" + std::to_string(a.inputs.size()) +
               ") do not fit each other and the node's " + std::to_string(inputs) + " inputs";
    for (int64_t v : a.steps)
        if (v < 0 || v > 1000)
            return "the number " + std::to_string(v) + " of a step is out of range (allowed: 0..1000)";
    for (size_t s = 0; s < steps; ++s) {
        int64_t const* n = &a.steps[s * kNumbersOfStep];
        int const operands = operandsOf(StepCode(n[0]));
        if ((operands < 1 && n[1] != 0) || (operands < 2 && n[2] != 0))
            return "step " + std::to_string(s) + " has an operand too many";
    }
    for (double v : a.parameters)
        if (std::isnan(v))
            return "a parameter is not a number";
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const inputs = ctx.inputCount();
    if (std::string why = checkNumbers(a, inputs); !why.empty())
        return ctx.error(why);
    int broadcast = 0;
    for (int i = 0; i < inputs; ++i) {
        int64_t const kind = a.inputs[size_t(i) * kNumbersOfInput];
        if (kind < 0 || kind > int64_t(InputKind::kChannel))
            return ctx.error("input " + std::to_string(i) + " has kind " + std::to_string(kind) + " (allowed: 0..2)");
        if (!isReal(ctx.type(i)))
            return ctx.error(ctx.describe(i) + " must be f32, f16 or i8");
        if (kind == int64_t(InputKind::kBroadcast) && broadcast++ != i)
            return ctx.error("inputs that are broadcast must come first; input " + std::to_string(i) + " does not");
    }
    if (!isReal(a.outputType))
        return ctx.error("output type " + std::to_string(int(a.outputType)) +
                         " is not possible (allowed: 0, f32, 1, f16, and 2, i8)");
    if (broadcast == 0)
        return ctx.error("no input is broadcast: nothing gives the shape");
    if (std::string why = checkExpression(a); !why.empty())
        return ctx.error(why);
    TW_ASSIGN(ir::Shape y, broadcastInputs(ctx, broadcast));
    for (int i = broadcast; i < inputs; ++i) {
        bool const scalar = a.inputs[size_t(i) * kNumbersOfInput] == int64_t(InputKind::kScalar);
        int64_t const axis = a.inputs[size_t(i) * kNumbersOfInput + 1];
        if (!scalar && (axis < 0 || axis >= int64_t(y.size())))
            return ctx.error("axis " + std::to_string(axis) + " of " + ctx.describe(i) +
                             " is out of range (allowed: 0.." + std::to_string(int64_t(y.size()) - 1) + ")");
        ir::Dim const count = ir::volume(ctx.shape(i)), want = scalar ? ir::Dim(1) : y[size_t(axis)];
        if (count.isConst() && want.isConst() && !(count == want))
            return ctx.error(ctx.describe(i) + " has " + count.str() + " elements; the expression needs " + want.str());
    }
    ctx.output(0, a.outputType, std::move(y));
    return {};
}

// Rounding errors of several steps add up.
Tolerance tolerance(ir::Node const&, DataType type)
{
    return isNarrowFloat(type) ? Tolerance::forType(type) : Tolerance{5e-5, 5e-5};
}

void domain(ir::Node const& node, int input, Domain& d)
{
    DataType const type = node.inputs[size_t(input)]->type;
    d = isQuantized(type) ? Domain::all(type) : Domain{-3, 3, false, false};
}

} // namespace

std::optional<StepCode> stepOf(elementwise::Operation operation)
{
    using O = elementwise::Operation;
    switch (operation) {
    case O::kSum:
        return StepCode::kAdd;
    case O::kProd:
        return StepCode::kMul;
    case O::kMax:
        return StepCode::kMax;
    case O::kMin:
        return StepCode::kMin;
    case O::kSub:
        return StepCode::kSub;
    case O::kDiv:
        return StepCode::kDiv;
    default:
        return std::nullopt;
    }
}

std::optional<StepCode> stepOf(unary::Operation operation)
{
    using O = unary::Operation;
    switch (operation) {
    case O::kExp:
        return StepCode::kExp;
    case O::kLog:
        return StepCode::kLog;
    case O::kSqrt:
        return StepCode::kSqrt;
    case O::kRecip:
        return StepCode::kReciprocal;
    case O::kAbs:
        return StepCode::kAbs;
    case O::kNeg:
        return StepCode::kNegate;
    case O::kCeil:
        return StepCode::kCeil;
    case O::kFloor:
        return StepCode::kFloor;
    case O::kErf:
        return StepCode::kErf;
    case O::kRound:
        return StepCode::kRound;
    default:
        return std::nullopt;
    }
}

std::string checkExpression(Attrs const& a)
{
    return kernels::jit::checkProgram(specOf(a).program);
}

bool isQuantized(ir::Node const& node)
{
    auto is8 = [](ir::Value const* v) { return v && isQuantized(v->type); };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is8) || is8(node.outputs[0]);
}

bool isExact(StepCode code, int64_t activation)
{
    if (code != StepCode::kActivation)
        return code != StepCode::kExp && code != StepCode::kLog && code != StepCode::kErf;
    using K = activation::Kind;
    return activation == int64_t(K::kRelu) || activation == int64_t(K::kLeakyRelu) || activation == int64_t(K::kClip) ||
           activation == int64_t(K::kThresholdedRelu);
}

namespace {

char const* nameOf(StepCode code)
{
    using Code = StepCode;
    switch (code) {
    case Code::kConstant:
        return "Literal";
    case Code::kAdd:
        return "Sum";
    case Code::kSub:
        return "Sub";
    case Code::kMul:
        return "Prod";
    case Code::kDiv:
        return "Div";
    case Code::kMax:
        return "Max";
    case Code::kMin:
        return "Min";
    case Code::kParametricRelu:
        return "ParametricRelu";
    case Code::kExp:
        return "Exp";
    case Code::kLog:
        return "Log";
    case Code::kSqrt:
        return "Sqrt";
    case Code::kReciprocal:
        return "Recip";
    case Code::kAbs:
        return "Abs";
    case Code::kNegate:
        return "Neg";
    case Code::kCeil:
        return "Ceil";
    case Code::kFloor:
        return "Floor";
    case Code::kErf:
        return "Erf";
    case Code::kRound:
        return "Round";
    case Code::kSquare:
        return "Square";
    case Code::kActivation:
        return "";
    }
    return "";
}

std::string numberText(double v)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.9gf", v);
    return text;
}

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    size_t const inputs = a.inputs.size() / kNumbersOfInput, count = a.steps.size() / kNumbersOfStep;
    auto operand = [&](int64_t i) {
        return i < int64_t(inputs) ? "arg" + std::to_string(i) : "v" + std::to_string(i - int64_t(inputs));
    };
    std::vector<std::string> operations, literals;
    for (size_t s = 0; s < count; ++s) {
        int64_t const* step = &a.steps[s * kNumbersOfStep];
        double const* parameters = &a.parameters[s * kParametersOfStep];
        StepCode const code = StepCode(step[0]);
        std::string line = "v" + std::to_string(s) + " = ";
        if (code == StepCode::kConstant) {
            literals.push_back(numberText(parameters[0]));
            operations.push_back(line + literals.back());
            continue;
        }
        FusedActivation activation;
        activation.kind = int32_t(step[3]);
        line += (code == StepCode::kActivation ? activationName(activation) : nameOf(code)) + "(" + operand(step[1]);
        if (operandsOf(code) == 2)
            line += ", " + operand(step[2]);
        operations.push_back(line + ")");
    }
    addExpression(facts, inputs, operations, literals);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "pointwise",
    .minInputs = 1,
    .maxInputs = kMaxInputs,
    .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
    .infer = infer,
    .reference = reference,
    .domain = domain,
    .tolerance = tolerance,
    .cpuTactics = &cpuTactics,
    .cudaTactics = &cudaTactics,
    .inspect = inspect,
    .isCheap = true,
    .mixesFloats = true,
    .computesShapes = true,
};

} // namespace tw::ops::pointwise
