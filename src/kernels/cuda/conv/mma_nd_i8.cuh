// SPDX-License-Identifier: Apache-2.0
// Sums of products of i8 in convolutions over up to three axes. After integerEndSource().
//   type Element; int TILE_M, TILE_N, VECTOR; bool ALIGNED
#pragma once

#include "kernels/cuda/common/mma_i8.cuh"
#include "kernels/cuda/conv/mma_nd_places.cuh"

namespace tw::cuda::conv_nd {

using Args = IntegerArgsOf<i8>;

// Each warp has 32 rows; registers are laid out as mma.sync wants them.
struct Sums
{
    i32 d[2][WARP_N / 8][4] = {};
    int row, column; // of this warp in the tile
    TW_INLINE Sums(int warp) : row(warp % WARPS_M * 32), column(warp / WARPS_M * WARP_N) {}
    TW_INLINE void add(u32 xs, u32 fs, int lane)
    {
#pragma unroll
        for (int k = 0; k < STEP / 32; ++k) {
            u32 fx[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                loadMatrix4(fx[i], xs + unitAt(row + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j) {
                u32 b[4];
                loadMatrix4(b, fs + unitAt(column + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    mma(d[i][j * 2], fx[i], b[0], b[1]);
                    mma(d[i][j * 2 + 1], fx[i], b[2], b[3]);
                }
            }
        }
    }
    TW_INLINE void put(u32 to, int lane) const
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < WARP_N / 8; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    storeTwo(to + ((row + i * 16 + h * 8 + lane / 4) * PITCH + column + j * 8 + lane % 4 * 2) * 4,
                             __int_as_float(d[i][j][h * 2]), __int_as_float(d[i][j][h * 2 + 1]));
    }
};

// What a thread does with four columns of each of its rows of y, or as many as there are (`left`), from `filter` on. Of
// filters that only fill y's pixels up, scale and bias are those of the last one.
struct Finish
{
    float scale[4], bias[4];
    EndNumbers numbers;
    TW_INLINE Finish(Args const& a, int filter, int left) : numbers(endNumbers(a.end))
    {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            int const k = min(filter + (e < left ? e : 0), a.filtersY - 1);
            scale[e] = endScale(a.end, k);
            bias[e] = endBias(a.end, k);
        }
    }
    // `from`: the sums; `split` blocks have a part of each.
    TW_INLINE void put(Args const& a, u32 from, int split, i64 pixelY, int filter, int left) const
    {
        i32 sum[4] = {};
        for (int r = 0; r < split; ++r) {
            float4 const part = split > 1 ? loadFourOf(addressIn(from, r)) : loadFour(from);
            sum[0] += __float_as_int(part.x);
            sum[1] += __float_as_int(part.y);
            sum[2] += __float_as_int(part.z);
            sum[3] += __float_as_int(part.w);
        }
        float v[4];
        endFour(v, sum, scale, bias, numbers,
                static_cast<EndResidual const*>(a.end.residual) + pixelY * a.pixelResidual + filter, left);
        putFour(reinterpret_cast<EndElement*>(a.y) + pixelY * a.pixelY + filter, v, a.end.table, left);
    }
};

} // namespace tw::cuda::conv_nd
