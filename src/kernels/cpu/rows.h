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
};

struct RowKernels
{
    // By Join: n contiguous floats joined, the neutral element of none. Sums of more than some thousand lose digits.
    float (*joinRow[3])(float const* x, int64_t n);
    // By Join: y[i] = y[i] joined with x[r * step + i] for r < rows, i < n.
    void (*joinRows[3])(float const* x, int64_t step, int64_t rows, int64_t n, float* y);
    // In double: neither overflows nor vanishes on the way.
    double (*productRow)(float const* x, int64_t n);
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::RowKernels const kRows;
}
namespace tw::avx512 {
extern kernels::RowKernels const kRows;
}
