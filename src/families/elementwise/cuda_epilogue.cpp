// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_epilogue.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/element.h"
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/hopper.h"
#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/common/source.h"

namespace tw::ops {

namespace {

// Expressions of v, $a$ and $b$ whose results are f32; FP16 and i8 where others do (null: the same). Comparisons are turned
// so that NaN goes through.
struct EpilogueText
{
    int kind;
    char const* exact;
    char const* half = nullptr;
    char const* bytes = nullptr; // null: as `half`
};
using activation::Kind;
constexpr EpilogueText kEpilogueTexts[] = {
    {int(FusedKind::kSwish), "v / (1.0f + expf(-v))", cuda::kSwish},
    {int(FusedKind::kGeluErf), "0.5f * v * (1.0f + erff(v * 0.707106781f))", cuda::kGeluErf, cuda::kGeluErfToBytes},
    {int(FusedKind::kGeluTanh), "0.5f * v * (1.0f + tanhf(0.797884561f * (v + 0.044715f * v * v * v)))",
     cuda::kGeluTanh, cuda::kGeluTanhToBytes},
    {int(FusedKind::kHardSwish), "v * ($a$ * v + $b$ > 1.0f ? 1.0f : $a$ * v + $b$ < 0.0f ? 0.0f : $a$ * v + $b$)"},
    {int(Kind::kRelu), cuda::kRelu},
    {int(Kind::kSigmoid), "1.0f / (1.0f + expf(-v))", "sigmoidOf(v)"},
    {int(Kind::kTanh), "tanhf(v)"},
    {int(Kind::kLeakyRelu), "v >= 0.0f ? v : $a$ * v"},
    {int(Kind::kElu), "v >= 0.0f ? v : $a$ * expm1f(v)"},
    {int(Kind::kSelu), "v > 0.0f ? $b$ * v : $b$ * ($a$ * expm1f(v))"},
    {int(Kind::kSoftsign), "v / (1.0f + fabsf(v))"},
    {int(Kind::kSoftplus), "$a$ * (($b$ * v < 0.0f ? 0.0f : $b$ * v) + log1pf(expf(-fabsf($b$ * v))))",
     "$a$ * (($b$ * v < 0.0f ? 0.0f : $b$ * v) + log1pf(__expf(-fabsf($b$ * v))))"},
    {int(Kind::kClip), "(v > $b$ ? $b$ : v) < $a$ ? $a$ : (v > $b$ ? $b$ : v)"},
    {int(Kind::kHardSigmoid), "$a$ * v + $b$ > 1.0f ? 1.0f : $a$ * v + $b$ < 0.0f ? 0.0f : $a$ * v + $b$"},
    {int(Kind::kScaledTanh), "$a$ * tanhf($b$ * v)"},
    {int(Kind::kThresholdedRelu), "v > $a$ ? v : 0.0f"},
};

} // namespace

std::string epilogueActivation(FusedActivation const& f, DataType type)
{
    for (EpilogueText const& a : kEpilogueTexts)
        if (a.kind == f.kind) {
            char const* const text = isFullFloat(type) || !a.half   ? a.exact
                                     : isQuantized(type) && a.bytes ? a.bytes
                                                                    : a.half;
            return cuda::expand(text, {{"a", cuda::literal(f.alpha)}, {"b", cuda::literal(f.beta)}});
        }
    return {};
}

namespace {

std::string programSource(Epilogue const& e, bool hasResidual, DataType type, std::string const& name)
{
    return stepsSource(name + "Steps", e.expression(), hasResidual ? 2 : 1, type, false) + "TW_INLINE float " + name +
           "(float v, float r) { return " + name + (hasResidual ? "Steps(v, r); }\n" : "Steps(v); }\n");
}

} // namespace

std::string exactEpilogue(Epilogue const& e, bool hasResidual, char const* name)
{
    if (e.hasSteps())
        return programSource(e, hasResidual, DataType::kFloat, name);
    std::string const activate = std::string(name) + "Activation";
    return activationSource(activate.c_str(), e.activation.kind, e.activation.alpha, e.activation.beta) +
           "TW_INLINE float " + name + "(float v, float r) { return " + activate +
           (hasResidual ? "(v + r); }\n" : "(v); }\n");
}

void setEpilogue(cuda::Epilogue& to, Epilogue const& e, bool hasResidual, DataType type)
{
    to.residual = hasResidual;
    to.activation = epilogueActivation(e.activation, type);
    to.end = e.hasSteps() ? programSource(e, hasResidual, type, "epilogue") : std::string();
}

std::string packFloats(TensorSpec const& constant, int64_t count)
{
    std::vector<float> values(size_t(std::max<int64_t>(count, 0)), 0.0f);
    int64_t const known = std::min(
        {count, constant.dims.volume(), int64_t(constant.constant->sizeBytes()) / int64_t(sizeOf(constant.type))});
    withFloat(constant.type, [&](auto element) {
        auto const* const from = constant.constant->as<decltype(element)>();
        std::transform(from, from + known, values.begin(), [](auto v) { return loadElement(v); });
    });
    return std::string(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float));
}

cuda::IntegerEnd integerEndOf(Problem const& p, Epilogue const& epilogue)
{
    auto const has = [&](size_t i) { return i < p.inputs.size() && p.inputs[i].present; };
    cuda::IntegerEnd e;
    e.store = p.outputs[0].type;
    e.bias = has(Epilogue::kBias);
    e.residual = has(Epilogue::kResidual);
    if (e.residual)
        e.residualType = p.inputs[Epilogue::kResidual].type;
    e.innerScale = has(Epilogue::kInnerScale);
    e.outputScale = has(Epilogue::kOutputScale);
    e.table = has(Epilogue::kTable);
    e.activation = epilogueActivation(epilogue.activation, e.store);
    return e;
}

cuda::IntegerEndArgs integerEndArgs(RunArgs const& args)
{
    auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    cuda::IntegerEndArgs e;
    TensorRef const scale = optional(Epilogue::kScale);
    e.scale = scale.as<float>();
    e.scaleStep = scale.count() == 1 ? 0 : 1;
    e.bias = optional(Epilogue::kBias).as<float>();
    e.residual = optional(Epilogue::kResidual).data;
    e.innerScale = optional(Epilogue::kInnerScale).as<float>();
    e.residualScale = optional(Epilogue::kResidualScale).as<float>();
    e.outputScale = optional(Epilogue::kOutputScale).as<float>();
    e.table = optional(Epilogue::kTable).as<int8_t>();
    return e;
}

namespace {

// Expressions of $a$ and $b$. `half`: what is rounded to FP16 in the end; quotients and roots stay exact, for what may be
// rounded down after them. `rounded`, of quantized nodes: each step rounded by itself, never contracted; what no instruction
// gives exactly goes through double. Null: as `text`.
struct StepText
{
    StepCode code;
    char const* text;
    char const* half = nullptr;
    char const* rounded = nullptr;
};
constexpr StepText kStepTexts[] = {
    {StepCode::kAdd, "$a$ + $b$", nullptr, "__fadd_rn($a$, $b$)"},
    {StepCode::kSub, "$a$ - $b$", nullptr, "__fsub_rn($a$, $b$)"},
    {StepCode::kMul, "$a$ * $b$", nullptr, "__fmul_rn($a$, $b$)"},
    {StepCode::kDiv, "$a$ / $b$", nullptr, "__fdiv_rn($a$, $b$)"},
    {StepCode::kMax, "$a$ != $a$ ? $a$ : $b$ != $b$ ? $b$ : $a$ > $b$ ? $a$ : $b$"}, // NaN on either side wins
    {StepCode::kMin, "$a$ != $a$ ? $a$ : $b$ != $b$ ? $b$ : $a$ < $b$ ? $a$ : $b$"},
    {StepCode::kParametricRelu, "$a$ >= 0 ? $a$ : $b$ * $a$", nullptr, "$a$ >= 0 ? $a$ : __fmul_rn($b$, $a$)"},
    {StepCode::kExp, "exp($a$)", "halfExp($a$)", "float(exp(double($a$)))"},
    {StepCode::kLog, "log($a$)", "halfLog($a$)", "float(log(double($a$)))"},
    {StepCode::kSqrt, "sqrt($a$)", nullptr, "__fsqrt_rn($a$)"},
    {StepCode::kReciprocal, "1 / $a$", nullptr, "__frcp_rn($a$)"},
    {StepCode::kAbs, "fabs($a$)"},
    {StepCode::kNegate, "-$a$"},
    {StepCode::kCeil, "ceil($a$)"},
    {StepCode::kFloor, "floor($a$)"},
    {StepCode::kErf, "erf($a$)", "halfErf($a$)", "float(erf(double($a$)))"},
    {StepCode::kRound, "rint($a$)"},
    {StepCode::kSquare, "$a$ * $a$", nullptr, "__fmul_rn($a$, $a$)"},
    {StepCode::kSign, "$a$ > 0 ? 1 : $a$ < 0 ? -1 : 0"},
    {StepCode::kActivation, "activate$number$($a$)", nullptr, "float(activate$number$(double($a$)))"},
};

constexpr bool hasText(StepCode code)
{
    return code == StepCode::kConstant || !isKnown(code) ||
           std::ranges::find(kStepTexts, code, &StepText::code) != std::end(kStepTexts);
}
static_assert([] {
    int code = 0;
    while (code < kStepCodes && hasText(StepCode(code)))
        ++code;
    return code == kStepCodes;
}());

std::string expression(ExpressionStep const& step, std::string const& a, std::string const& b, size_t number,
                       bool isHalf, bool rounds)
{
    if (step.code == StepCode::kConstant)
        return cuda::literal(step.alpha);
    StepText const& t = *std::ranges::find(kStepTexts, step.code, &StepText::code);
    char const* const other = rounds ? t.rounded : isHalf ? t.half : nullptr;
    return cuda::expand(other ? other : t.text, {{"a", a}, {"b", b}, {"number", std::to_string(number)}});
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
    auto valueOf = [](int value) { return fmt::format("v{}", value); };
    for (int i = 0; i < inputs; ++i)
        parameters += (i ? ", float " : "float ") + valueOf(i);
    for (size_t s = 0; s < steps.size(); ++s) {
        ExpressionStep const& step = steps[s];
        if (step.code == StepCode::kActivation)
            text += activationSource((fmt::format("activate{}", s)).c_str(), int(step.kind), step.alpha, step.beta,
                                     isHalf && !rounds);
        std::string const a = valueOf(step.a), b = valueOf(step.b);
        bool const isSteps = s + 1 == steps.size() && step.code == StepCode::kDiv && isQuantized(result);
        auto const by = divisorOf(steps, inputs, step);
        body += "    float const " + valueOf(inputs + int(s)) + " = " +
                (isSteps ? "stepsOf(" + a + ", " + b + ")"
                 : by    ? "quotientOf(" + a + ", " + cuda::literal(*by) + ", " + cuda::literal(1 / *by) + ")"
                         : expression(step, a, b, s, isHalf, rounds)) +
                ";\n";
    }
    return text + "TW_INLINE float " + name + "(" + parameters + ")\n{\n" + body + "    return " +
           valueOf(inputs + int(steps.size()) - 1) + ";\n}\n";
}

} // namespace tw::ops
