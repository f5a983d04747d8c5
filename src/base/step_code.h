// SPDX-License-Identifier: Apache-2.0
// What a step of an element-wise expression computes of its operands a and b: for attributes of nodes, references,
// emitters and device code alike. docs/howto/add-an-epilogue-step.md says what a new one needs.
#pragma once

#include <cstdint>
#include <utility>

namespace tw {

// The numbers stand in plans.
enum class StepCode : int32_t
{
    kConstant = 0, // alpha
    kAdd = 1,
    kSub = 2,
    kMul = 3,
    kDiv = 4,
    kMax = 5, // NaN on either side wins
    kMin = 6,
    kParametricRelu = 7, // a >= 0 ? a : b a
    kExp = 10,
    kLog = 11,
    kSqrt = 12,
    kReciprocal = 13,
    kAbs = 14,
    kNegate = 15,
    kCeil = 16,
    kFloor = 17,
    kErf = 18,
    kRound = 19, // half to even
    kSquare = 20,
    kSign = 21,       // -1, 0 or 1; of NaN 0
    kActivation = 30, // kind, alpha, beta
};

inline constexpr int kStepCodes = 31; // behind the last one

constexpr bool isKnown(StepCode code)
{
    return (code >= StepCode::kConstant && code <= StepCode::kParametricRelu) ||
           (code >= StepCode::kExp && code <= StepCode::kSign) || code == StepCode::kActivation;
}

// How many operands it has.
constexpr int operandsOf(StepCode code)
{
    if (code == StepCode::kConstant)
        return 0;
    return code <= StepCode::kParametricRelu ? 2 : 1;
}

// Its name in the layer inspector; that of an activation is its kind's.
constexpr char const* nameOf(StepCode code)
{
    constexpr std::pair<StepCode, char const*> kNames[] = {
        {StepCode::kConstant, "Literal"}, {StepCode::kAdd, "Sum"},
        {StepCode::kSub, "Sub"},          {StepCode::kMul, "Prod"},
        {StepCode::kDiv, "Div"},          {StepCode::kMax, "Max"},
        {StepCode::kMin, "Min"},          {StepCode::kParametricRelu, "ParametricRelu"},
        {StepCode::kExp, "Exp"},          {StepCode::kLog, "Log"},
        {StepCode::kSqrt, "Sqrt"},        {StepCode::kReciprocal, "Recip"},
        {StepCode::kAbs, "Abs"},          {StepCode::kNegate, "Neg"},
        {StepCode::kCeil, "Ceil"},        {StepCode::kFloor, "Floor"},
        {StepCode::kErf, "Erf"},          {StepCode::kRound, "Round"},
        {StepCode::kSquare, "Square"},    {StepCode::kSign, "Sign"},
        {StepCode::kActivation, ""}};
    for (auto const& [known, name] : kNames)
        if (known == code)
            return name;
    return "";
}

// Functions of one number, alpha and beta as in src/ops/activation/op.h.
enum class ActivationKind : int32_t
{
    // Same numbers as ops::activation::Kind.
    kRelu = 0,
    kSigmoid = 1,
    kTanh = 2,
    kLeakyRelu = 3,
    kElu = 4,
    kSelu = 5,
    kSoftsign = 6,
    kSoftplus = 7,
    kClip = 8,
    kHardSigmoid = 9,
    kScaledTanh = 10,
    kThresholdedRelu = 11,
    // Chains of several layers that the passes find.
    kSwish = 12,     // x / (1 + exp(-x))
    kHardSwish = 13, // x max(0, min(1, alpha x + beta))
    kGeluErf = 14,   // x/2 (1 + erf(x / sqrt 2))
    kGeluTanh = 15,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
};
inline constexpr int kActivationKinds = 16;

// Whether an FP32 instruction or two give the step's exact result, rounded: not exp, log, erf and most activations.
constexpr bool isExact(StepCode code, ActivationKind kind)
{
    if (code != StepCode::kActivation)
        return code != StepCode::kExp && code != StepCode::kLog && code != StepCode::kErf;
    return kind == ActivationKind::kRelu || kind == ActivationKind::kLeakyRelu || kind == ActivationKind::kClip ||
           kind == ActivationKind::kThresholdedRelu;
}

// Whether a rounding error of an operand may become a step of the result: for kernels that round factors.
constexpr bool jumps(StepCode code, ActivationKind kind)
{
    return code == StepCode::kCeil || code == StepCode::kFloor || code == StepCode::kRound || code == StepCode::kSign ||
           (code == StepCode::kActivation && kind == ActivationKind::kThresholdedRelu);
}

// One step of an expression. Operands are numbers of values: the inputs first, then the results of the steps
// before; the last step makes the result.
struct ExpressionStep
{
    StepCode code = StepCode::kConstant;
    int a = 0, b = 0;
    ActivationKind kind = ActivationKind::kRelu;
    float alpha = 0, beta = 0;

    bool operator==(ExpressionStep const&) const = default;
};

} // namespace tw
