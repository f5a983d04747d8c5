// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/source.h"
#include "ops/pointwise/jit_program.h"

namespace tw::ops::pointwise {

namespace {

using Code = StepCode;

// `isHalf`: what is rounded to FP16 in the end. Quotients and roots stay exact, for what may be rounded down after
// them.
std::string expression(kernels::jit::PointwiseStep const& step, std::string const& a, std::string const& b, int number,
                       bool isHalf)
{
    auto larger = [](std::string const& x, std::string const& y, char const* than) { // NaN on either side wins
        return x + " != " + x + " ? " + x + " : " + y + " != " + y + " ? " + y + " : " + x + than + y + " ? " + x +
               " : " + y;
    };
    switch (step.code) {
    case Code::kConstant:
        return cuda::literal(step.alpha);
    case Code::kAdd:
        return a + " + " + b;
    case Code::kSub:
        return a + " - " + b;
    case Code::kMul:
        return a + " * " + b;
    case Code::kDiv:
        return a + " / " + b;
    case Code::kMax:
        return larger(a, b, " > ");
    case Code::kMin:
        return larger(a, b, " < ");
    case Code::kParametricRelu:
        return a + " >= 0 ? " + a + " : " + b + " * " + a;
    case Code::kExp:
        return (isHalf ? "halfExp(" : "exp(") + a + ")";
    case Code::kLog:
        return (isHalf ? "halfLog(" : "log(") + a + ")";
    case Code::kSqrt:
        return "sqrt(" + a + ")";
    case Code::kReciprocal:
        return "1 / " + a;
    case Code::kAbs:
        return "fabs(" + a + ")";
    case Code::kNegate:
        return "-" + a;
    case Code::kCeil:
        return "ceil(" + a + ")";
    case Code::kFloor:
        return "floor(" + a + ")";
    case Code::kErf:
        return (isHalf ? "halfErf(" : "erf(") + a + ")";
    case Code::kRound:
        return "rint(" + a + ")";
    case Code::kSquare:
        return a + " * " + a;
    case Code::kActivation:
        return "activate" + std::to_string(number) + "(" + a + ")";
    }
    return "0";
}

// Of quantized nodes: each step rounded by itself, never contracted. What no instruction gives exactly goes through
// double.
std::string roundedExpression(kernels::jit::PointwiseStep const& step, std::string const& a, std::string const& b,
                              int number)
{
    switch (step.code) {
    case Code::kAdd:
        return "__fadd_rn(" + a + ", " + b + ")";
    case Code::kSub:
        return "__fsub_rn(" + a + ", " + b + ")";
    case Code::kMul:
        return "__fmul_rn(" + a + ", " + b + ")";
    case Code::kDiv:
        return "__fdiv_rn(" + a + ", " + b + ")";
    case Code::kParametricRelu:
        return a + " >= 0 ? " + a + " : __fmul_rn(" + b + ", " + a + ")";
    case Code::kSqrt:
        return "__fsqrt_rn(" + a + ")";
    case Code::kReciprocal:
        return "__frcp_rn(" + a + ")";
    case Code::kSquare:
        return "__fmul_rn(" + a + ", " + a + ")";
    case Code::kExp:
    case Code::kLog:
    case Code::kErf:
    case Code::kActivation:
        return "float(" + expression(step, "double(" + a + ")", b, number, false) + ")";
    default:
        return expression(step, a, b, number, false);
    }
}

// A divisor that the expression has as a number, within the bounds of quotientOf().
std::optional<float> divisorOf(kernels::jit::PointwiseProgram const& program, kernels::jit::PointwiseStep const& step)
{
    constexpr float kLeast = 0x1p-30F, kMost = 0x1p30F;
    if (step.code != Code::kDiv || step.b < program.inputs)
        return std::nullopt;
    auto const& by = program.steps[size_t(step.b - program.inputs)];
    float const size = std::fabs(by.alpha);
    return by.code == Code::kConstant && size >= kLeast && size <= kMost ? std::optional(by.alpha) : std::nullopt;
}

// Scalars and numbers of a channel as tensors of y's rank that are broadcast.
void views(ir::Node const& node, RunArgs const& args, Extents& y, Extents* operands)
{
    auto const& a = node.attrsAs<Attrs>();
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        auto const kind = InputKind(a.inputs[i * kNumbersOfInput]);
        if (kind == InputKind::kBroadcast)
            continue;
        operands[i].rank = y.rank;
        for (int d = 0; d < y.rank; ++d)
            operands[i][d] = 1;
        if (kind == InputKind::kChannel) {
            int const axis = int(a.inputs[i * kNumbersOfInput + 1]);
            operands[i][axis] = y[axis];
        }
    }
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    kernels::jit::PointwiseProgram const program = specOf(p.node->attrsAs<Attrs>()).program;
    bool const isHalf = isNarrowFloat(p.outputs[0].type), rounds = isQuantized(*p.node);
    Pointwise what{"pointwise", {}, "", views, true};
    if (isHalf)
        what.text += cuda::include("kernels/cuda/common/half_math.cuh");
    what.text += cuda::include("kernels/cuda/common/steps.cuh");
    std::string parameters, body;
    auto name = [](int value) { return "v" + std::to_string(value); };
    for (int i = 0; i < program.inputs; ++i) {
        what.inputs.push_back(i);
        parameters += (i ? ", float " : "float ") + name(i);
    }
    for (size_t s = 0; s < program.steps.size(); ++s) {
        kernels::jit::PointwiseStep const& step = program.steps[s];
        if (step.code == Code::kActivation)
            what.text += activationSource(("activate" + std::to_string(s)).c_str(), int(step.kind), step.alpha,
                                          step.beta, isHalf && !rounds);
        bool const isSteps = s + 1 == program.steps.size() && step.code == Code::kDiv && isQuantized(p.outputs[0].type);
        auto const by = divisorOf(program, step);
        body += "    float const " + name(program.inputs + int(s)) + " = " +
                (isSteps ? "stepsOf(" + name(step.a) + ", " + name(step.b) + ")"
                 : by ? "quotientOf(" + name(step.a) + ", " + cuda::literal(*by) + ", " + cuda::literal(1 / *by) + ")"
                 : rounds ? roundedExpression(step, name(step.a), name(step.b), int(s))
                          : expression(step, name(step.a), name(step.b), int(s), isHalf)) +
                ";\n";
    }
    what.text += "TW_INLINE float apply(" + parameters + ")\n{\n" + body + "    return " +
                 name(program.inputs + int(program.steps.size()) - 1) + ";\n}\n";
    return pointwiseKernels(p, what);
}

std::vector<Formats> formats(Problem const& p)
{
    std::vector<int> inputs;
    for (size_t i = 0; i < p.inputs.size(); ++i)
        inputs.push_back(int(i));
    return pointwiseFormats(p, inputs, views);
}

constexpr CudaTactic kPlain{"pointwise_any_plain_cuda", 5, generate, nullptr, nullptr, formats};

} // namespace

constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::pointwise
