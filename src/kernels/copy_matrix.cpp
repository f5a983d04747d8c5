// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy_matrix.h"

#include <emmintrin.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

namespace tw::kernels {

namespace {

// 4 rows of `to` from 4 contiguous columns of `from` at a time; SSE2, which every x86-64 has.
void copyTransposed(float* to, int64_t ld, float const* from, int64_t rows, int64_t columns, int64_t columnStride)
{
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        float* t = to + i * ld;
        int64_t j = 0;
        for (; j + 4 <= columns; j += 4) {
            float const* f = from + i + j * columnStride;
            __m128 a = _mm_loadu_ps(f), b = _mm_loadu_ps(f + columnStride), c = _mm_loadu_ps(f + 2 * columnStride),
                   d = _mm_loadu_ps(f + 3 * columnStride);
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps(t + j, a);
            _mm_storeu_ps(t + ld + j, b);
            _mm_storeu_ps(t + 2 * ld + j, c);
            _mm_storeu_ps(t + 3 * ld + j, d);
        }
        for (; j < columns; ++j)
            for (int64_t r = 0; r < 4; ++r)
                t[r * ld + j] = from[i + r + j * columnStride];
    }
    for (; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            to[i * ld + j] = from[i + j * columnStride];
}

} // namespace

void copyMatrix(float* to, int64_t ld, int64_t width, float const* from, int64_t rows, int64_t columns,
                int64_t rowStride, int64_t columnStride)
{
    if (columnStride == 1)
        for (int64_t i = 0; i < rows; ++i)
            std::memcpy(to + i * ld, from + i * rowStride, size_t(columns) * sizeof(float));
    else if (rowStride == 1)
        copyTransposed(to, ld, from, rows, columns, columnStride);
    else
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                to[i * ld + j] = from[i * rowStride + j * columnStride];
    if (columns < width)
        for (int64_t i = 0; i < rows; ++i)
            std::fill(to + i * ld + columns, to + i * ld + width, 0.f);
}

} // namespace tw::kernels
