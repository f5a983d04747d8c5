// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/cpu/word_tiles.h"

namespace tw::avx2 {

namespace {

inline __m256i sixteenWords(int8_t const* p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p)));
}

} // namespace

void wordTileInput(int8_t const* const* pixels, int64_t channels, int16_t* v, int64_t position)
{
    for (int64_t c = 0; c < channels; c += 16) {
        __m256i t[4][4]; // Bt d
        for (int j = 0; j < 4; ++j) {
            __m256i const d0 = sixteenWords(pixels[j] + c), d1 = sixteenWords(pixels[4 + j] + c),
                          d2 = sixteenWords(pixels[8 + j] + c), d3 = sixteenWords(pixels[12 + j] + c);
            t[0][j] = _mm256_sub_epi16(d0, d2);
            t[1][j] = _mm256_add_epi16(d1, d2);
            t[2][j] = _mm256_sub_epi16(d2, d1);
            t[3][j] = _mm256_sub_epi16(d1, d3);
        }
        for (int i = 0; i < 4; ++i) {
            auto store = [&](int j, __m256i x) {
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(v + (4 * i + j) * position + c), x);
            };
            store(0, _mm256_sub_epi16(t[i][0], t[i][2]));
            store(1, _mm256_add_epi16(t[i][1], t[i][2]));
            store(2, _mm256_sub_epi16(t[i][2], t[i][1]));
            store(3, _mm256_sub_epi16(t[i][1], t[i][3]));
        }
    }
}

void wordTileOutput(int32_t const* m, int64_t position, int64_t columns, int32_t* sums, int64_t pixel)
{
    for (int64_t k = 0; k < columns; k += 8) {
        auto load = [&](int i, int j) {
            return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(m + (4 * i + j) * position + k));
        };
        auto store = [&](int i, __m256i x) {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + i * pixel + k), _mm256_srai_epi32(x, 2));
        };
        __m256i upper[4], lower[4]; // At M
        for (int j = 0; j < 4; ++j) {
            __m256i const a = load(1, j), b = load(2, j);
            upper[j] = _mm256_add_epi32(load(0, j), _mm256_add_epi32(a, b));
            lower[j] = _mm256_sub_epi32(_mm256_sub_epi32(a, b), load(3, j));
        }
        auto rows = [&](int i, __m256i const* x) {
            store(i, _mm256_add_epi32(x[0], _mm256_add_epi32(x[1], x[2])));
            store(i + 1, _mm256_sub_epi32(_mm256_sub_epi32(x[1], x[2]), x[3]));
        };
        rows(0, upper);
        rows(2, lower);
    }
}

} // namespace tw::avx2
