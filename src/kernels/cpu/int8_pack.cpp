// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/int8_pack.h"

#include <algorithm>
#include <cstring>

#include <emmintrin.h> // SSE2, which every x86-64 CPU has

namespace tw::kernels {

namespace {

__m128i load(void const* p)
{
    return _mm_loadu_si128(static_cast<__m128i const*>(p));
}

void store(void* p, __m128i v)
{
    _mm_storeu_si128(static_cast<__m128i*>(p), v);
}

// Four vectors of 32-bit elements become those of the same place: v[i][j] and v[j][i] change places.
void transpose4(__m128i v[4])
{
    __m128i const a = _mm_unpacklo_epi32(v[0], v[1]), b = _mm_unpackhi_epi32(v[0], v[1]),
                  c = _mm_unpacklo_epi32(v[2], v[3]), d = _mm_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm_unpacklo_epi64(a, c);
    v[1] = _mm_unpackhi_epi64(a, c);
    v[2] = _mm_unpacklo_epi64(b, d);
    v[3] = _mm_unpackhi_epi64(b, d);
}

// Of four rows of 16 bytes, [16 columns][4 rows] in four vectors.
void interleave4(__m128i v[4])
{
    __m128i const a = _mm_unpacklo_epi8(v[0], v[1]), b = _mm_unpackhi_epi8(v[0], v[1]),
                  c = _mm_unpacklo_epi8(v[2], v[3]), d = _mm_unpackhi_epi8(v[2], v[3]);
    v[0] = _mm_unpacklo_epi16(a, c);
    v[1] = _mm_unpackhi_epi16(a, c);
    v[2] = _mm_unpacklo_epi16(b, d);
    v[3] = _mm_unpackhi_epi16(b, d);
}

void packAny(int8_t const* b, int64_t k, int64_t columns, int64_t bRow, int64_t bColumn, int8_t* to)
{
    for (int64_t j = 0; j < columns; ++j)
        for (int64_t p = 0; p < k; ++p)
            to[4 * j + p] = b[p * bRow + j * bColumn];
}

// start[j] -= 128 * the sum of the four bytes of column j.
void subtract(int8_t const* row, int64_t width, int32_t* start)
{
    __m128i const factor = _mm_set1_epi16(-128);
    for (int64_t j = 0; j < width; j += 4) {
        __m128i const v = load(row + 4 * j);
        __m128i const even = _mm_srai_epi16(_mm_slli_epi16(v, 8), 8), odd = _mm_srai_epi16(v, 8);
        __m128i const sums = _mm_madd_epi16(_mm_add_epi16(even, odd), factor);
        store(start + j, _mm_add_epi32(load(start + j), sums));
    }
}

} // namespace

void packInt8Panel(bool offset, int8_t const* b, int64_t k, int64_t columns, int64_t width, int64_t bRow,
                   int64_t bColumn, int8_t* to)
{
    auto* const start = reinterpret_cast<int32_t*>(to);
    std::memset(start, 0, size_t(4 * width));
    int8_t* const rows = to + 4 * width;
    int64_t const rowBytes = 4 * width, whole = k / 4 * 4;
    bool const byColumns = bRow == 1 && bColumn != 1, byRows = bColumn == 1;
    if (columns < width || whole < k || (!byColumns && !byRows))
        std::memset(rows, 0, size_t((k + 3) / 4 * rowBytes));
    int64_t p = 0, j = 0;
    if (byColumns) { // 16 bytes of four columns at a time
        for (; j + 4 <= columns; j += 4)
            for (p = 0; p + 16 <= k; p += 16) {
                __m128i v[4];
                for (int i = 0; i < 4; ++i)
                    v[i] = load(b + (j + i) * bColumn + p);
                transpose4(v);
                for (int i = 0; i < 4; ++i)
                    store(rows + (p / 4 + i) * rowBytes + 4 * j, v[i]);
            }
        for (int64_t column = 0; column < columns; ++column)
            for (int64_t q = column < j ? p : 0; q < k; q += 4)
                std::memcpy(rows + q / 4 * rowBytes + 4 * column, b + column * bColumn + q,
                            size_t(std::min<int64_t>(4, k - q)));
    } else if (byRows) { // 16 columns of four rows
        for (; p < whole; p += 4) {
            int8_t* const row = rows + p / 4 * rowBytes;
            for (j = 0; j + 16 <= columns; j += 16) {
                __m128i v[4];
                for (int i = 0; i < 4; ++i)
                    v[i] = load(b + (p + i) * bRow + j);
                interleave4(v);
                for (int i = 0; i < 4; ++i)
                    store(row + 4 * j + 16 * i, v[i]);
            }
            packAny(b + p * bRow + j, 4, columns - j, bRow, 1, row + 4 * j);
        }
        packAny(b + p * bRow, k - p, columns, bRow, 1, rows + p / 4 * rowBytes);
    } else {
        for (; p < k; p += 4)
            packAny(b + p * bRow, std::min<int64_t>(4, k - p), columns, bRow, bColumn, rows + p / 4 * rowBytes);
    }
    if (offset)
        for (p = 0; p < k; p += 4)
            subtract(rows + p / 4 * rowBytes, width, start);
}

void packInt8Rows(bool offset, int8_t const* a, int64_t rows, int64_t k, int64_t aRow, int64_t aColumn, int64_t stride,
                  int8_t* to)
{
    char const flip = offset ? char(-128) : char(0);
    __m128i const flips = _mm_set1_epi8(flip);
    int64_t const end = (k + 3) / 4 * 4;
    int64_t i = 0;
    // A transposed matrix: 16 rows, four of k at a time.
    for (; aRow == 1 && aColumn != 1 && i + 16 <= rows; i += 16)
        for (int64_t p = 0; p < end; p += 4) {
            __m128i v[4];
            for (int64_t q = 0; q < 4; ++q)
                v[q] = _mm_xor_si128(p + q < k ? load(a + (p + q) * aColumn + i) : _mm_setzero_si128(), flips);
            interleave4(v);
            alignas(16) int8_t quads[64];
            for (int q = 0; q < 4; ++q)
                store(quads + 16 * q, v[q]);
            for (int64_t row = 0; row < 16; ++row)
                std::memcpy(to + (i + row) * stride + p, quads + 4 * row, 4);
        }
    for (; i < rows; ++i) {
        int8_t const* const from = a + i * aRow;
        int8_t* const row = to + i * stride;
        int64_t p = 0;
        for (; aColumn == 1 && p + 16 <= k; p += 16)
            store(row + p, _mm_xor_si128(load(from + p), flips));
        for (; p < k; ++p)
            row[p] = int8_t(from[p * aColumn] ^ flip);
        for (; p < end; ++p)
            row[p] = int8_t(flip);
    }
}

} // namespace tw::kernels
