// SPDX-License-Identifier: Apache-2.0
// Expressions of steps (base/step_code.h): how attributes hold them, and how references and plain kernels compute them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/step_code.h"
#include "ops/elementwise/op.h"
#include "ops/unary/op.h"

namespace tw::ops {

// In attributes, four numbers a step: StepCode, first and second operand (0 where there is none), activation kind (0
// elsewhere); and two parameters, alpha and beta.
inline constexpr int kNumbersOfStep = 4, kParametersOfStep = 2;

// Empty when the two lists fit each other and hold nothing that could wrap into something known; else what is wrong.
std::string checkStepNumbers(std::span<int64_t const> numbers, std::span<double const> parameters);
// Of lists that fit each other.
std::vector<ExpressionStep> stepsOf(std::span<int64_t const> numbers, std::span<double const> parameters);
void appendStep(ExpressionStep const& step, std::vector<int64_t>& numbers, std::vector<double>& parameters);

// The operation as a step; nothing where there is none.
std::optional<StepCode> stepOf(elementwise::Operation operation);
std::optional<StepCode> stepOf(unary::Operation operation);

// Whether no result is below 0 (NaN may be among them), as far as the operands tell by whether they are.
bool isNonNegative(ExpressionStep const& step, bool a, bool b);
// The same of the last of `steps`, of values from isInput(0) to isInput(inputs - 1) on.
bool isNonNegative(std::span<ExpressionStep const> steps, size_t inputs, std::function<bool(size_t)> const& isInput);

// y[i] = what `steps` make of x[0][i], x[1][i], ...: the results of steps before the last lie in `values`, n a step.
// In float for kernels, in double for references. `rounds`: each step is rounded to f32 by itself.
Result<void> computeSteps(std::span<ExpressionStep const> steps, std::span<float const* const> x, float* y,
                          float* values, int64_t n, bool rounds = false);
Result<void> computeSteps(std::span<ExpressionStep const> steps, std::span<double const* const> x, double* y,
                          double* values, int64_t n, bool rounds = false);

} // namespace tw::ops
