// SPDX-License-Identifier: Apache-2.0
// Factors of products in BF16 (jit/gemm_kernel.h): two numbers that follow each other along the summed dimension lie in
// one 32-bit element, the first in its lower half. What holds such elements has float's type, as packed operands do.
#pragma once

#include <cstdint>

#include "kernels/cpu/jit/emitter.h"

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
