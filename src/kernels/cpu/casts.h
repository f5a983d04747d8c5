// SPDX-License-Identifier: Apache-2.0
// Conversions of runs of n elements between types, as the op `identity` defines them. One table for each instruction
// set.
#pragma once

#include <cstdint>

#include "kernels/cpu/jit/emitter.h"

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

namespace tw::kernels {

inline CastKernels const& castsOf(jit::Isa isa)
{
    return isa == jit::Isa::kAvx512 ? avx512::kCasts : avx2::kCasts;
}

} // namespace tw::kernels

// Factors of products in BF16 (jit/gemm_kernel.h): two numbers that follow each other along the summed dimension lie in
// one 32-bit element, the first in its lower half. What holds such elements has float's type, as packed operands do.
namespace tw::kernels {

// to[i * ld + p] = the pair (2 p, 2 p + 1) of from[i * rowStride + j * columnStride], j < columns, for i < rows; zeros
// from there to `width` elements. Rounded half to even.
void roundPairs(jit::Isa isa, float* to, int64_t ld, int64_t width, float const* from, int64_t rows, int64_t columns,
                int64_t rowStride, int64_t columnStride);
// to[p * ld + j] = the same pair of from[j * columnStride + i * rowStride]: of a second operand, whose pairs are of rows
// i < rows; zeros from there to `depth` rows of pairs, and for columns <= j < width. Allocates: not for runs.
void roundColumnPairs(jit::Isa isa, float* to, int64_t ld, int64_t width, int64_t depth, float const* from,
                      int64_t rows, int64_t columns, int64_t rowStride, int64_t columnStride);

} // namespace tw::kernels
