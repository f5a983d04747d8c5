// SPDX-License-Identifier: Apache-2.0
// Expressions of f32 elements, emitted as one loop: y[r][i] = f(x0[r][i], x1[r][i], ...) for rows r of n elements. An
// input may be one number for each row (or for all of them), or one row for all rows: that is in its steps.
// Inputs and y may be of other types that the code knows: they are converted at both ends (to i8 half to even, clamped, NaN to
// 0), the steps are the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/step_code.h"
#include "base/types.h"
#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

inline constexpr int kMaxPointwiseInputs = 8;

struct PointwiseProgram
{
    int inputs = 0;
    std::vector<ExpressionStep> steps; // the last one makes y
    DataType x[kMaxPointwiseInputs] = {};
    DataType y = DataType::kFloat;

    // Whether all are 32 bits, whose vectors AVX2 has masks for.
    bool isFloat() const { return isFullFloat(y) && std::all_of(x, x + inputs, isFullFloat); }
};
inline constexpr int kMaxExpressionSteps = 64;
// Empty when every operand exists, every input is used and the values fit the registers of every instruction set.
std::string checkProgram(PointwiseProgram const& program);

struct PointwiseArgs
{
    void const* x[kMaxPointwiseInputs];
    int64_t rowBytes[kMaxPointwiseInputs]; // from row to row
    void* y;
    int64_t yRowBytes;
    int64_t rows;
    int64_t n; // elements of a row
};
using PointwiseFunction = void (*)(PointwiseArgs const*);

// spread[i]: input i has one number for a whole row. stream: y, of f32, is written past the caches (y and its rows begin
// on cache lines).
Result<Code> emitPointwise(Isa isa, PointwiseProgram const& program, std::vector<bool> const& spread, bool stream);

} // namespace tw::kernels::jit
