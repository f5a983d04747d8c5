// SPDX-License-Identifier: Apache-2.0
// Trigonometric and hyperbolic functions of runs of f32 elements, computed in double: relative error below 1e-7 before
// the last rounding, infinities and NaN as in the C library. One table for each instruction set.
#pragma once

#include <cstdint>

namespace tw::kernels {

// y[i] = f(x[i]) for i < n. False: some element is larger than it can reduce; y is then not to be used.
using RowFunction = bool (*)(float const* x, float* y, int64_t n);

struct RowFunctions
{
    RowFunction sin, cos, tan, sinh, cosh, asin, acos, atan, asinh, acosh, atanh;
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::RowFunctions const kFunctions;
}
namespace tw::avx512 {
extern kernels::RowFunctions const kFunctions;
}
