// SPDX-License-Identifier: Apache-2.0
// Puts matrices of i8 in the order in which the kernels of jit/gemm_kernel.h read them; those need AVX2, too.
#pragma once

#include <cstdint>

namespace tw::avx2 {

// b[p * bRow + j * bColumn], p < k, j < columns, as a panel of `width` columns (a multiple of 8): first the start values,
// int32 [width], which are zero without `offset`; then [ceil(k / 4)][width][4] bytes. Zeros where there is no p or j.
void packInt8Panel(bool offset, int8_t const* b, int64_t k, int64_t columns, int64_t width, int64_t bRow,
                   int64_t bColumn, int8_t* to);

// Rows of a, to[i * stride + p] = a[i * aRow + p * aColumn] (plus 128 with `offset`), and zeros as numbers up to the
// next multiple of 4 of k.
void packInt8Rows(bool offset, int8_t const* a, int64_t rows, int64_t k, int64_t aRow, int64_t aColumn, int64_t stride,
                  int8_t* to);

} // namespace tw::avx2
