// SPDX-License-Identifier: Apache-2.0
// Exact sums of products of i8 in convolutions by mma.sync. After places_nd.cuh and integerEndSource().
#pragma once

#include "kernels/cuda/common/mma_i8.cuh"
#include "kernels/cuda/mma/window_warps.cuh"

namespace tw::cuda::product {

struct Sums : WindowWarps
{
    using Values = i32[2][WARP_N / 8][4];
    TW_INLINE explicit Sums(u8*) {}
    TW_INLINE void add(Values& d, u32 xs) const
    {
        u32 const fs = xs + Windows::A_BYTES;
#pragma unroll
        for (int k = 0; k < STEP / 32; ++k) {
            u32 fx[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                loadMatrix4(fx[i], placeX(xs, i, k));
#pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j) {
                u32 b[4];
                loadMatrix4(b, placeF(fs, j, k));
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    mma(d[i][j * 2], fx[i], b[0], b[1]);
                    mma(d[i][j * 2 + 1], fx[i], b[2], b[3]);
                }
            }
        }
    }
    TW_INLINE void put(Values const& d, u32 to) const
    {
        putPairs(to, [&](int i, int j, int h, int e) { return __int_as_float(d[i][j][h * 2 + e]); });
    }
};

} // namespace tw::cuda::product
