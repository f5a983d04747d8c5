// SPDX-License-Identifier: Apache-2.0
// Vector kernels on runs of f32 elements: rows joined into one value or into each other. One table for each instruction
// set.
#pragma once

#include <cstdint>

namespace tw::kernels {

enum class Join : int
{
    kSum = 0,
    kMax = 1, // NaN wins over every number
    kMin = 2,
    kSumAbs = 3,     // of absolute values
    kSumSquares = 4, // of squares
    kMaxAbs = 5,
};
inline constexpr int kJoins = 6;

struct RowKernels
{
    // By Join: n contiguous floats joined, the neutral element of none. Sums of more than some thousand lose digits.
    float (*joinRow[kJoins])(float const* x, int64_t n);
    // By Join: y[i], as it is, joined with x[r * step + i] for r < rows, i < n.
    void (*joinRows[kJoins])(float const* x, int64_t step, int64_t rows, int64_t n, float* y);
    // In double: neither overflows nor vanishes on the way.
    double (*productRow)(float const* x, int64_t n);
    // The sum of exp(x[i] - m): m finite, no x[i] above it; NaN of NaN.
    float (*sumOfPowers)(float const* x, int64_t n, float m);
    // y[i] += exp(x[r * step + i] - m[i]) for r < rows, i < n; where m[i] is infinite or NaN, y[i] is of no use.
    void (*addPowers)(float const* x, int64_t step, int64_t rows, int64_t n, float const* m, float* y);
    // y[i] = (x[i] - m) - l, which keeps the digits of x - m where l is small; of columns, m[i] and l[i].
    void (*lessTwo)(float const* x, int64_t n, float m, float l, float* y);
    void (*lessTwoRows)(float const* x, int64_t n, float const* m, float const* l, float* y);
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::RowKernels const kRows;
}
namespace tw::avx512 {
extern kernels::RowKernels const kRows;
}
