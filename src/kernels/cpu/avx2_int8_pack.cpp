// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/cpu/int8_pixels.h"

namespace tw::avx2 {

namespace {

inline __m128i load(int8_t const* p)
{
    return _mm_loadu_si128(reinterpret_cast<__m128i const*>(p));
}

// 16 bytes from each of two places.
inline __m256i load(int8_t const* low, int8_t const* high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load(low)), load(high), 1);
}

inline void store(int8_t* p, __m256i v)
{
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}

inline void copy4(int8_t* to, int8_t const* from)
{
    __builtin_memcpy(to, from, 4);
}

// Of four rows of 16 bytes in each half, [16 columns][4 rows] of the lower halves in v[0] and v[1], of the upper ones in
// v[2] and v[3].
inline void interleave4(__m256i v[4])
{
    __m256i const a = _mm256_unpacklo_epi8(v[0], v[1]), b = _mm256_unpackhi_epi8(v[0], v[1]),
                  c = _mm256_unpacklo_epi8(v[2], v[3]), d = _mm256_unpackhi_epi8(v[2], v[3]);
    __m256i const e = _mm256_unpacklo_epi16(a, c), f = _mm256_unpackhi_epi16(a, c), g = _mm256_unpacklo_epi16(b, d),
                  h = _mm256_unpackhi_epi16(b, d);
    v[0] = _mm256_permute2x128_si256(e, f, 0x20);
    v[1] = _mm256_permute2x128_si256(g, h, 0x20);
    v[2] = _mm256_permute2x128_si256(e, f, 0x31);
    v[3] = _mm256_permute2x128_si256(g, h, 0x31);
}

// In each half, four vectors of four 32-bit elements change places: v[i][j] and v[j][i].
inline void transpose4(__m256i v[4])
{
    __m256i const a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]),
                  c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi64(a, c);
    v[1] = _mm256_unpackhi_epi64(a, c);
    v[2] = _mm256_unpacklo_epi64(b, d);
    v[3] = _mm256_unpackhi_epi64(b, d);
}

void packAny(int8_t const* b, int64_t k, int64_t columns, int64_t bRow, int64_t bColumn, int8_t* to)
{
    for (int64_t j = 0; j < columns; ++j)
        for (int64_t p = 0; p < k; ++p)
            to[4 * j + p] = b[p * bRow + j * bColumn];
}

// Up to four rows of b whose columns are contiguous.
void packRows(int8_t const* b, int64_t k, int64_t columns, int64_t bRow, int8_t* to)
{
    int64_t j = 0;
    for (; k == 4 && j + 32 <= columns; j += 32) {
        __m256i v[4];
        for (int64_t i = 0; i < 4; ++i)
            v[i] = load(b + i * bRow + j, b + i * bRow + j + 16);
        interleave4(v);
        for (int64_t i = 0; i < 4; ++i)
            store(to + 4 * j + 32 * i, v[i]);
    }
    packAny(b + j, k, columns - j, bRow, 1, to + 4 * j);
}

// Up to eight columns of b, the numbers of each contiguous.
void packColumns(int8_t const* b, int64_t k, int64_t columns, int64_t bColumn, int64_t rowBytes, int8_t* to)
{
    int64_t p = 0;
    for (; columns == 8 && p + 16 <= k; p += 16) {
        __m256i v[4];
        for (int64_t i = 0; i < 4; ++i)
            v[i] = load(b + i * bColumn + p, b + (i + 4) * bColumn + p);
        transpose4(v);
        for (int64_t i = 0; i < 4; ++i)
            store(to + (p / 4 + i) * rowBytes, v[i]);
    }
    for (; p + 4 <= k; p += 4)
        for (int64_t j = 0; j < columns; ++j)
            copy4(to + p / 4 * rowBytes + 4 * j, b + j * bColumn + p);
    packAny(b + p, k - p, columns, 1, bColumn, to + p / 4 * rowBytes);
}

// start[j] = -128 * the sum of column j, for eight columns.
void startValues(int8_t const* rows, int64_t count, int64_t rowBytes, int8_t* start)
{
    __m256i const ones = _mm256_set1_epi8(1), factor = _mm256_set1_epi16(-128);
    __m256i sum = _mm256_setzero_si256();
    for (int64_t i = 0; i < count; ++i) {
        __m256i const v = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(rows + i * rowBytes));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(ones, v), factor)); // pairs fit in 16 bits
    }
    store(start, sum);
}

} // namespace

void packInt8Panel(bool offset, int8_t const* b, int64_t k, int64_t columns, int64_t width, int64_t bRow,
                   int64_t bColumn, int8_t* to)
{
    int8_t* const rows = to + 4 * width;
    int64_t const rowBytes = 4 * width, count = (k + 3) / 4;
    bool const byRows = bColumn == 1, byColumns = bRow == 1 && !byRows;
    bool const zeros = columns < width || k % 4 != 0;
    for (int64_t at = 0; (zeros || !offset) && at < (zeros ? (1 + count) * rowBytes : rowBytes); at += 32)
        store(to + at, _mm256_setzero_si256());
    for (int64_t j = 0; byColumns && j < columns; j += 8)
        packColumns(b + j * bColumn, k, columns - j < 8 ? columns - j : 8, bColumn, rowBytes, rows + 4 * j);
    for (int64_t p = 0; !byColumns && p < k; p += 4) {
        int64_t const depth = k - p < 4 ? k - p : 4;
        int8_t* const row = rows + p / 4 * rowBytes;
        byRows ? packRows(b + p * bRow, depth, columns, bRow, row)
               : packAny(b + p * bRow, depth, columns, bRow, bColumn, row);
    }
    for (int64_t j = 0; offset && j < width; j += 8)
        startValues(rows + 4 * j, count, rowBytes, to + 4 * j);
}

void packInt8Rows(bool offset, int8_t const* a, int64_t rows, int64_t k, int64_t aRow, int64_t aColumn, int64_t stride,
                  int8_t* to)
{
    auto const flip = int8_t(offset ? -128 : 0);
    __m256i const flips = _mm256_set1_epi8(flip);
    int64_t const end = (k + 3) / 4 * 4;
    int64_t i = 0;
    // A transposed matrix: 32 rows, four of k at a time.
    for (; aRow == 1 && aColumn != 1 && i + 32 <= rows; i += 32)
        for (int64_t p = 0; p < end; p += 4) {
            __m256i v[4];
            for (int64_t q = 0; q < 4; ++q) {
                int8_t const* const from = a + (p + q) * aColumn + i;
                v[q] = _mm256_xor_si256(p + q < k ? load(from, from + 16) : _mm256_setzero_si256(), flips);
            }
            interleave4(v);
            alignas(32) int8_t quads[128];
            for (int64_t q = 0; q < 4; ++q)
                store(quads + 32 * q, v[q]);
            for (int64_t row = 0; row < 32; ++row)
                copy4(to + (i + row) * stride + p, quads + 4 * row);
        }
    for (; i < rows; ++i) {
        int8_t const* const from = a + i * aRow;
        int8_t* const row = to + i * stride;
        int64_t p = 0;
        for (; aColumn == 1 && p + 32 <= k; p += 32)
            store(row + p, _mm256_xor_si256(load(from + p, from + p + 16), flips));
        for (; p < k; ++p)
            row[p] = int8_t(from[p * aColumn] ^ flip);
        for (; p < end; ++p)
            row[p] = flip;
    }
}

namespace {

inline __m256i loadWhole(int8_t const* p)
{
    return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p));
}

// Of 32 numbers four sums of -a where a is negative, in 64 bits.
inline __m256i negativeSum(__m256i magnitude, __m256i negative)
{
    return _mm256_sad_epu8(_mm256_and_si256(magnitude, negative), _mm256_setzero_si256());
}

inline int32_t total(__m256i sums)
{
    __m128i const two = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return _mm_cvtsi128_si32(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two)));
}

inline int32_t negativePart(int8_t a)
{
    return a < 0 ? -a : 0;
}

} // namespace

void packInt8Signs(int8_t const* a, int64_t rows, int64_t k, int64_t aRow, int64_t aColumn, int64_t stride, int8_t* to,
                   int32_t* sums)
{
    for (int64_t i = 0; i < rows; ++i) {
        int8_t const* const from = a + i * aRow;
        int8_t* const row = to + i * stride;
        __m256i sum = _mm256_setzero_si256();
        int64_t p = 0;
        for (; aColumn == 1 && p + 32 <= k; p += 32) {
            __m256i const v = loadWhole(from + p), magnitude = _mm256_abs_epi8(v),
                          negative = _mm256_cmpgt_epi8(_mm256_setzero_si256(), v);
            __m256i const low = _mm256_unpacklo_epi32(magnitude, negative),
                          high = _mm256_unpackhi_epi32(magnitude, negative);
            store(row + 2 * p, _mm256_permute2x128_si256(low, high, 0x20));
            store(row + 2 * p + 32, _mm256_permute2x128_si256(low, high, 0x31));
            sum = _mm256_add_epi64(sum, negativeSum(magnitude, negative));
        }
        int32_t rest = 0;
        for (; p < (k + 3) / 4 * 4; ++p) {
            int8_t const v = p < k ? from[p * aColumn] : int8_t(0);
            int8_t* const quad = row + p / 4 * 8 + p % 4;
            quad[0] = int8_t(v < 0 ? -v : v);
            quad[4] = int8_t(v < 0 ? -1 : 0);
            rest += negativePart(v);
        }
        sums[i] = total(sum) + rest;
    }
}

void negativeSums(int8_t const* a, int64_t rows, int64_t k, int64_t aRow, int32_t* sums)
{
    for (int64_t i = 0; i < rows; ++i, a += aRow) {
        __m256i sum = _mm256_setzero_si256();
        int64_t p = 0;
        for (; p + 32 <= k; p += 32) {
            __m256i const v = loadWhole(a + p);
            sum = _mm256_add_epi64(sum, negativeSum(_mm256_abs_epi8(v), _mm256_cmpgt_epi8(_mm256_setzero_si256(), v)));
        }
        int32_t rest = 0;
        for (; p < k; ++p)
            rest += negativePart(a[p]);
        sums[i] = total(sum) + rest;
    }
}

} // namespace tw::avx2
