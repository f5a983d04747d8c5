// SPDX-License-Identifier: Apache-2.0
// The transforms of Winograd's convolution F(2 x 2, 3x3) on integers, which are exact: with twice its usual matrix for filters on
// both sides sums are four times those of the convolution.
//   4 Y = At [ (G' g G't) . (Bt d B) ] A      d: a tile of x, i8 [4, 4]; g: one filter, i8 [3, 3]; Y: sums [2, 2]
// Tiles are at most 4 * 128, filters 9 * 128: both fit 16 bits, and products are of words. Sums may wrap in between; four times the
// result must not: 4 * 9 * 128 * 128 * channels < 2^31.
#pragma once

#include <cstdint>

namespace tw::kernels {

inline constexpr int kWordTilePositions = 16;
inline constexpr int64_t kMostWordTileChannels = (int64_t(1) << 31) / (4 * 9 * 128 * 128) - 1;

// g -> G' g G't, [16].
inline void wordTileFilter(int8_t const* g, int16_t* u)
{
    int rows[4][3]; // G' g
    for (int j = 0; j < 3; ++j) {
        int const a = g[j], b = g[3 + j], c = g[6 + j];
        rows[0][j] = 2 * a;
        rows[1][j] = a + b + c;
        rows[2][j] = a - b + c;
        rows[3][j] = 2 * c;
    }
    for (int i = 0; i < 4; ++i) {
        int const a = rows[i][0], b = rows[i][1], c = rows[i][2];
        u[4 * i] = int16_t(2 * a);
        u[4 * i + 1] = int16_t(a + b + c);
        u[4 * i + 2] = int16_t(a - b + c);
        u[4 * i + 3] = int16_t(2 * c);
    }
}

} // namespace tw::kernels

namespace tw::avx2 {

// Of the 16 pixels of a tile, `channels` (a multiple of 16) each: v[i * position + channel].
void wordTileInput(int8_t const* const* pixels, int64_t channels, int16_t* v, int64_t position);
// Of m[i * position + column], `columns` (a multiple of 8): the sums of the tile's four pixels, sums[i * pixel + column].
void wordTileOutput(int32_t const* m, int64_t position, int64_t columns, int32_t* sums, int64_t pixel);

} // namespace tw::avx2
