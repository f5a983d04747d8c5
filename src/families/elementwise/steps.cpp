// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/steps.h"

#include <algorithm>
#include <cmath>

#include "base/tensor.h"
#include "families/elementwise/activate.h"

namespace tw::ops {

namespace {

// NaN on either side wins.
template <class T>
T larger(T a, T b)
{
    return a > b || std::isnan(a) ? a : b;
}

template <class T>
T value(StepCode code, T a, T b, float alpha)
{
    switch (code) {
    case StepCode::kConstant:
        return alpha;
    case StepCode::kAdd:
        return a + b;
    case StepCode::kSub:
        return a - b;
    case StepCode::kMul:
        return a * b;
    case StepCode::kDiv:
        return a / b;
    case StepCode::kMax:
        return larger(a, b);
    case StepCode::kMin:
        return -larger(-a, -b);
    case StepCode::kParametricRelu:
        return a >= 0 ? a : b * a;
    case StepCode::kExp:
        return std::exp(a);
    case StepCode::kLog:
        return std::log(a);
    case StepCode::kSqrt:
        return std::sqrt(a);
    case StepCode::kReciprocal:
        return 1 / a;
    case StepCode::kAbs:
        return std::fabs(a);
    case StepCode::kNegate:
        return -a;
    case StepCode::kCeil:
        return std::ceil(a);
    case StepCode::kFloor:
        return std::floor(a);
    case StepCode::kErf:
        return std::erf(a);
    case StepCode::kRound:
        return std::nearbyint(a);
    case StepCode::kSquare:
        return a * a;
    case StepCode::kSign:
        return T(a > 0) - T(a < 0);
    case StepCode::kActivation:
        break;
    }
    return a;
}

// By the reference, whose results are rounded to f32.
template <class T>
Result<void> activateExactly(ExpressionStep const& step, T const* x, T* y, int64_t n)
{
    Tensor const buffer(DataType::kFloat, {n});
    for (int64_t i = 0; i < n; ++i)
        buffer.ref().set(i, double(x[i]));
    TW_TRY(activateReference(FusedActivation(step), buffer.ref()));
    for (int64_t i = 0; i < n; ++i)
        y[i] = T(buffer.ref().get(i));
    return {};
}

Result<void> compute(ExpressionStep const& step, double const* a, double const* b, double* y, int64_t n, bool rounds)
{
    if (step.code == StepCode::kActivation)
        return activateExactly(step, a, y, n);
    for (int64_t i = 0; i < n; ++i) {
        double const exact = value(step.code, a[i], b[i], step.alpha);
        y[i] = rounds ? double(float(exact)) : exact;
    }
    return {};
}

// Rounded ones that no instruction gives exactly: as the reference has them.
Result<void> compute(ExpressionStep const& step, float const* a, float const* b, float* y, int64_t n, bool rounds)
{
    bool const isByReference = rounds && !isExact(step.code, step.kind);
    if (step.code == StepCode::kActivation && isByReference)
        return activateExactly(step, a, y, n);
    if (step.code == StepCode::kActivation)
        activate(FusedActivation(step), a, y, n);
    else if (isByReference)
        for (int64_t i = 0; i < n; ++i)
            y[i] = float(value(step.code, double(a[i]), double(b[i]), step.alpha));
    else
        for (int64_t i = 0; i < n; ++i)
            y[i] = value(step.code, a[i], b[i], step.alpha);
    return {};
}

template <class T>
Result<void> computeAll(std::span<ExpressionStep const> steps, std::span<T const* const> x, T* y, T* values, int64_t n,
                        bool rounds)
{
    auto operand = [&](int at) {
        return size_t(at) < x.size() ? x[size_t(at)] : values + (at - int64_t(x.size())) * n;
    };
    for (size_t s = 0; s < steps.size(); ++s)
        TW_TRY(compute(steps[s], operand(steps[s].a), operand(steps[s].b),
                       s + 1 < steps.size() ? values + int64_t(s) * n : y, n, rounds));
    return {};
}

} // namespace

std::string checkStepNumbers(std::span<int64_t const> numbers, std::span<double const> parameters)
{
    size_t const steps = numbers.size() / kNumbersOfStep;
    if (numbers.size() % kNumbersOfStep != 0 || parameters.size() != steps * kParametersOfStep)
        return fmt::format("the lists of steps ({} numbers) and parameters ({}) do not fit each other", numbers.size(),
                           parameters.size());
    for (int64_t v : numbers)
        if (v < 0 || v > 1000)
            return fmt::format("the number {} of a step is out of range (allowed: 0..1000)", v);
    for (size_t s = 0; s < steps; ++s) {
        int64_t const* n = &numbers[s * kNumbersOfStep];
        int const operands = operandsOf(StepCode(n[0]));
        if ((operands < 1 && n[1] != 0) || (operands < 2 && n[2] != 0))
            return fmt::format("step {} has an operand too many", s);
    }
    if (std::any_of(parameters.begin(), parameters.end(), [](double v) { return std::isnan(v); }))
        return "a parameter is not a number";
    return {};
}

std::vector<ExpressionStep> stepsOf(std::span<int64_t const> numbers, std::span<double const> parameters)
{
    std::vector<ExpressionStep> steps;
    for (size_t s = 0; s < numbers.size() / kNumbersOfStep; ++s) {
        int64_t const* n = &numbers[s * kNumbersOfStep];
        double const* p = &parameters[s * kParametersOfStep];
        steps.push_back({StepCode(n[0]), int(n[1]), int(n[2]), ActivationKind(n[3]), float(p[0]), float(p[1])});
    }
    return steps;
}

void appendStep(ExpressionStep const& step, std::vector<int64_t>& numbers, std::vector<double>& parameters)
{
    numbers.insert(numbers.end(), {int64_t(step.code), step.a, step.b, int64_t(step.kind)});
    parameters.insert(parameters.end(), {step.alpha, step.beta});
}

namespace {

template <class Operation, size_t n>
std::optional<StepCode> find(Operation operation, std::pair<Operation, StepCode> const (&list)[n])
{
    for (auto const& [o, code] : list)
        if (o == operation)
            return code;
    return std::nullopt;
}

} // namespace

std::optional<StepCode> stepOf(elementwise::Operation operation)
{
    using O = elementwise::Operation;
    using S = StepCode;
    return find<O>(operation, {{O::kSum, S::kAdd},
                               {O::kProd, S::kMul},
                               {O::kMax, S::kMax},
                               {O::kMin, S::kMin},
                               {O::kSub, S::kSub},
                               {O::kDiv, S::kDiv}});
}

std::optional<StepCode> stepOf(unary::Operation operation)
{
    using O = unary::Operation;
    using S = StepCode;
    return find<O>(operation, {{O::kExp, S::kExp},
                               {O::kLog, S::kLog},
                               {O::kSqrt, S::kSqrt},
                               {O::kRecip, S::kReciprocal},
                               {O::kAbs, S::kAbs},
                               {O::kNeg, S::kNegate},
                               {O::kCeil, S::kCeil},
                               {O::kFloor, S::kFloor},
                               {O::kErf, S::kErf},
                               {O::kRound, S::kRound},
                               {O::kSign, S::kSign}});
}

Result<void> computeSteps(std::span<ExpressionStep const> steps, std::span<float const* const> x, float* y,
                          float* values, int64_t n, bool rounds)
{
    return computeAll(steps, x, y, values, n, rounds);
}

Result<void> computeSteps(std::span<ExpressionStep const> steps, std::span<double const* const> x, double* y,
                          double* values, int64_t n, bool rounds)
{
    return computeAll(steps, x, y, values, n, rounds);
}

bool isNonNegative(ExpressionStep const& step, bool a, bool b)
{
    switch (step.code) {
    case StepCode::kConstant:
        return step.alpha >= 0;
    case StepCode::kMul:
        return (a && b) || step.a == step.b;
    case StepCode::kAdd:
    case StepCode::kDiv:
    case StepCode::kMin:
        return a && b;
    case StepCode::kMax:
        return a || b;
    case StepCode::kExp:
    case StepCode::kSqrt:
    case StepCode::kAbs:
    case StepCode::kSquare:
        return true;
    case StepCode::kParametricRelu:
    case StepCode::kReciprocal:
    case StepCode::kCeil:
    case StepCode::kFloor:
    case StepCode::kErf:
    case StepCode::kRound:
    case StepCode::kSign:
        return a;
    case StepCode::kActivation:
        return isNonNegative(FusedActivation(step), a);
    default:
        return false;
    }
}

bool isNonNegative(std::span<ExpressionStep const> steps, size_t inputs, std::function<bool(size_t)> const& isInput)
{
    std::vector<bool> known(inputs + steps.size());
    for (size_t i = 0; i < inputs; ++i)
        known[i] = isInput(i);
    for (size_t i = 0; i < steps.size(); ++i)
        known[inputs + i] = isNonNegative(steps[i], known[size_t(steps[i].a)], known[size_t(steps[i].b)]);
    return !steps.empty() && known.back();
}

} // namespace tw::ops
