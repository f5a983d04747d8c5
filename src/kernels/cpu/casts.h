// SPDX-License-Identifier: Apache-2.0
// Conversions of runs of n elements between types, as the op `identity` defines them. One table for each instruction
// set.
#pragma once

#include <cstdint>

namespace tw::kernels {

struct CastKernels
{
    void (*floatToInt)(float const* x, int32_t* y, int64_t n); // toward zero, saturated; NaN gives 0
    void (*intToFloat)(int32_t const* x, float* y, int64_t n);
    void (*floatToHalf)(float const* x, uint16_t* y, int64_t n); // half to even
    void (*halfToFloat)(uint16_t const* x, float* y, int64_t n);
    void (*floatToBool)(float const* x, uint8_t* y, int64_t n);
    void (*boolToFloat)(uint8_t const* x, float* y, int64_t n);      // any byte but 0 is 1
    void (*floatToBfloat16)(float const* x, uint16_t* y, int64_t n); // half to even; NaN stays NaN
    void (*bfloat16ToFloat)(uint16_t const* x, float* y, int64_t n);
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::CastKernels const kCasts;
}
namespace tw::avx512 {
extern kernels::CastKernels const kCasts;
}
