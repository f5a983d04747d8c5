// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "families/elementwise/layer_facts.h"
#include "ops/pointwise/op.h"

namespace tw::ops {

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

} // namespace

void inspect_pointwise(LayerFacts& facts)
{
    using namespace pointwise;
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

} // namespace tw::ops
