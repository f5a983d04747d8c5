// SPDX-License-Identifier: Apache-2.0
// Vector kernels on channels-last i8 tensors. Channel counts are rounded up to whole cache lines (64): what lies after
// the last channel is read and written along, as the format allows. One table for each instruction set.
#pragma once

#include <cstdint>

#include "kernels/cpu/channels_last.h"

namespace tw::kernels {

// In a window of an average: sums of so many are exact in f32, and quotients round as exact ones do.
inline constexpr int64_t kMostInt8Averaged = (int64_t(1) << 17) - 1;

struct Int8PixelKernels
{
    // Averages are exact sums by the count, one FP32 division, half to even.
    void (*poolRow)(PoolRowOf<int8_t> const& row);
    // From planes [channels][pixels], channelStep apart, to pixels, and back. Real channels alone are read and written.
    void (*toNhwc)(int8_t const* x, int64_t channelStep, int8_t* y, int64_t step, int64_t channels, int64_t pixels);
    void (*fromNhwc)(int8_t const* x, int64_t step, int8_t* y, int64_t channelStep, int64_t channels, int64_t pixels);
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::Int8PixelKernels const kInt8Pixels;
}
namespace tw::avx512 {
extern kernels::Int8PixelKernels const kInt8Pixels;
}

// Puts matrices of i8 in the order in which the kernels of jit/gemm_kernel.h read them; those need AVX2, too.
namespace tw::avx2 {

// b[p * bRow + j * bColumn], p < k, j < columns, as a panel of `width` columns (a multiple of 8): first the start values,
// int32 [width], which are zero without `offset`; then [ceil(k / 4)][width][4] bytes. Zeros where there is no p or j.
void packInt8Panel(bool offset, int8_t const* b, int64_t k, int64_t columns, int64_t width, int64_t bRow,
                   int64_t bColumn, int8_t* to);

// Rows of a, to[i * stride + p] = a[i * aRow + p * aColumn] (plus 128 with `offset`), and zeros as numbers up to the
// next multiple of 4 of k.
void packInt8Rows(bool offset, int8_t const* a, int64_t rows, int64_t k, int64_t aRow, int64_t aColumn, int64_t stride,
                  int8_t* to);
// The same for kernels with signs: for four numbers eight bytes, |a|, then 255 where a is negative. sums[i] = the sum of -a
// over the negative a of row i.
void packInt8Signs(int8_t const* a, int64_t rows, int64_t k, int64_t aRow, int64_t aColumn, int64_t stride, int8_t* to,
                   int32_t* sums);
// The sums alone, of rows whose numbers are contiguous.
void negativeSums(int8_t const* a, int64_t rows, int64_t k, int64_t aRow, int32_t* sums);

} // namespace tw::avx2
