// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include <emmintrin.h>
#include <xmmintrin.h>

#include "kernels/cpu/gemm_parts.h"

namespace tw::kernels {

namespace {

constexpr int64_t kAhead = 32; // rows, from which cache lines are fetched before they are needed

// Squares of 4 x 4; SSE2, which every x86-64 has. Of each column a cache line (16 rows) is used up before the next ones
// come: at strides of 4 KiB all columns fall into one set of L1. Row i goes to row place(i).
template <class Place>
void transpose(float* to, int64_t ld, Place const& place, float const* from, int64_t rows, int64_t columns,
               int64_t columnStride)
{
    for (int64_t block = 0; block < rows; block += 16) {
        int64_t const end = std::min(block + 16, rows);
        int64_t j = 0;
        // Short pieces far apart: the hardware does not foresee them.
        if (block + kAhead < rows)
            for (int64_t q = 0; q < columns; ++q)
                _mm_prefetch(reinterpret_cast<char const*>(from + block + kAhead + q * columnStride), _MM_HINT_T0);
        for (; j + 4 <= columns; j += 4) {
            float const* f = from + j * columnStride;
            int64_t i = block;
            for (; i + 4 <= end; i += 4) {
                __m128 a = _mm_loadu_ps(f + i), b = _mm_loadu_ps(f + i + columnStride),
                       c = _mm_loadu_ps(f + i + 2 * columnStride), d = _mm_loadu_ps(f + i + 3 * columnStride);
                _MM_TRANSPOSE4_PS(a, b, c, d);
                _mm_storeu_ps(to + place(i) * ld + j, a);
                _mm_storeu_ps(to + place(i + 1) * ld + j, b);
                _mm_storeu_ps(to + place(i + 2) * ld + j, c);
                _mm_storeu_ps(to + place(i + 3) * ld + j, d);
            }
            for (; i < end; ++i)
                for (int64_t q = 0; q < 4; ++q)
                    to[place(i) * ld + j + q] = f[i + q * columnStride];
        }
        for (; j < columns; ++j)
            for (int64_t i = block; i < end; ++i)
                to[place(i) * ld + j] = from[i + j * columnStride];
    }
}

} // namespace

void copyTransposed(float* to, int64_t ld, int64_t const* rowOf, float const* from, int64_t rows, int64_t columns,
                    int64_t columnStride)
{
    transpose(
        to, ld, [=](int64_t i) { return rowOf[i]; }, from, rows, columns, columnStride);
}

void copyMatrix(float* to, int64_t ld, int64_t width, float const* from, int64_t rows, int64_t columns,
                int64_t rowStride, int64_t columnStride)
{
    if (columnStride == 1)
        for (int64_t i = 0; i < rows; ++i)
            std::memcpy(to + i * ld, from + i * rowStride, size_t(columns) * sizeof(float));
    else if (rowStride == 1)
        transpose(
            to, ld, [](int64_t i) { return i; }, from, rows, columns, columnStride);
    else
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                to[i * ld + j] = from[i * rowStride + j * columnStride];
    if (columns < width)
        for (int64_t i = 0; i < rows; ++i)
            std::fill(to + i * ld + columns, to + i * ld + width, 0.f);
}

} // namespace tw::kernels
