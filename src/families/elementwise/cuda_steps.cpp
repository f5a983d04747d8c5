// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "families/elementwise/cuda_epilogue.h"
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/source.h"

namespace tw::ops {

namespace {

// `isHalf`: what is rounded to FP16 in the end. Quotients and roots stay exact, for what may be rounded down after
// them.
std::string expression(ExpressionStep const& step, std::string const& a, std::string const& b, int number, bool isHalf)
{
    auto larger = [](std::string const& x, std::string const& y, char const* than) { // NaN on either side wins
        return x + " != " + x + " ? " + x + " : " + y + " != " + y + " ? " + y + " : " + x + than + y + " ? " + x +
               " : " + y;
    };
    switch (step.code) {
    case StepCode::kConstant:
        return cuda::literal(step.alpha);
    case StepCode::kAdd:
        return a + " + " + b;
    case StepCode::kSub:
        return a + " - " + b;
    case StepCode::kMul:
        return a + " * " + b;
    case StepCode::kDiv:
        return a + " / " + b;
    case StepCode::kMax:
        return larger(a, b, " > ");
    case StepCode::kMin:
        return larger(a, b, " < ");
    case StepCode::kParametricRelu:
        return a + " >= 0 ? " + a + " : " + b + " * " + a;
    case StepCode::kExp:
        return (isHalf ? "halfExp(" : "exp(") + a + ")";
    case StepCode::kLog:
        return (isHalf ? "halfLog(" : "log(") + a + ")";
    case StepCode::kSqrt:
        return "sqrt(" + a + ")";
    case StepCode::kReciprocal:
        return "1 / " + a;
    case StepCode::kAbs:
        return "fabs(" + a + ")";
    case StepCode::kNegate:
        return "-" + a;
    case StepCode::kCeil:
        return "ceil(" + a + ")";
    case StepCode::kFloor:
        return "floor(" + a + ")";
    case StepCode::kErf:
        return (isHalf ? "halfErf(" : "erf(") + a + ")";
    case StepCode::kRound:
        return "rint(" + a + ")";
    case StepCode::kSquare:
        return a + " * " + a;
    case StepCode::kSign:
        return a + " > 0 ? 1 : " + a + " < 0 ? -1 : 0";
    case StepCode::kActivation:
        return "activate" + std::to_string(number) + "(" + a + ")";
    }
    return "0";
}

// Of quantized nodes: each step rounded by itself, never contracted. What no instruction gives exactly goes through
// double.
std::string roundedExpression(ExpressionStep const& step, std::string const& a, std::string const& b, int number)
{
    switch (step.code) {
    case StepCode::kAdd:
        return "__fadd_rn(" + a + ", " + b + ")";
    case StepCode::kSub:
        return "__fsub_rn(" + a + ", " + b + ")";
    case StepCode::kMul:
        return "__fmul_rn(" + a + ", " + b + ")";
    case StepCode::kDiv:
        return "__fdiv_rn(" + a + ", " + b + ")";
    case StepCode::kParametricRelu:
        return a + " >= 0 ? " + a + " : __fmul_rn(" + b + ", " + a + ")";
    case StepCode::kSqrt:
        return "__fsqrt_rn(" + a + ")";
    case StepCode::kReciprocal:
        return "__frcp_rn(" + a + ")";
    case StepCode::kSquare:
        return "__fmul_rn(" + a + ", " + a + ")";
    case StepCode::kExp:
    case StepCode::kLog:
    case StepCode::kErf:
    case StepCode::kActivation:
        return "float(" + expression(step, "double(" + a + ")", b, number, false) + ")";
    default:
        return expression(step, a, b, number, false);
    }
}

// A divisor that the expression has as a number, within the bounds of quotientOf().
std::optional<float> divisorOf(std::span<ExpressionStep const> steps, int inputs, ExpressionStep const& step)
{
    constexpr float kLeast = 0x1p-30F, kMost = 0x1p30F;
    if (step.code != StepCode::kDiv || step.b < inputs)
        return std::nullopt;
    auto const& by = steps[size_t(step.b - inputs)];
    float const size = std::fabs(by.alpha);
    return by.code == StepCode::kConstant && size >= kLeast && size <= kMost ? std::optional(by.alpha) : std::nullopt;
}

} // namespace

std::string stepsSource(std::string const& name, std::span<ExpressionStep const> steps, int inputs, DataType result,
                        bool rounds)
{
    bool const isHalf = isNarrowFloat(result);
    std::string text = isHalf ? cuda::include("kernels/cuda/common/half_math.cuh") : std::string();
    text += cuda::include("kernels/cuda/common/steps.cuh");
    std::string parameters, body;
    auto valueOf = [](int value) { return "v" + std::to_string(value); };
    for (int i = 0; i < inputs; ++i)
        parameters += (i ? ", float " : "float ") + valueOf(i);
    for (size_t s = 0; s < steps.size(); ++s) {
        ExpressionStep const& step = steps[s];
        if (step.code == StepCode::kActivation)
            text += activationSource(("activate" + std::to_string(s)).c_str(), int(step.kind), step.alpha, step.beta,
                                     isHalf && !rounds);
        std::string const a = valueOf(step.a), b = valueOf(step.b);
        bool const isSteps = s + 1 == steps.size() && step.code == StepCode::kDiv && isQuantized(result);
        auto const by = divisorOf(steps, inputs, step);
        body += "    float const " + valueOf(inputs + int(s)) + " = " +
                (isSteps  ? "stepsOf(" + a + ", " + b + ")"
                 : by     ? "quotientOf(" + a + ", " + cuda::literal(*by) + ", " + cuda::literal(1 / *by) + ")"
                 : rounds ? roundedExpression(step, a, b, int(s))
                          : expression(step, a, b, int(s), isHalf)) +
                ";\n";
    }
    return text + "TW_INLINE float " + name + "(" + parameters + ")\n{\n" + body + "    return " +
           valueOf(inputs + int(steps.size()) - 1) + ";\n}\n";
}

} // namespace tw::ops
