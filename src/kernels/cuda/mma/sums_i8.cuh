// SPDX-License-Identifier: Apache-2.0
// Exact sums of products of matrices of i8 by mma.sync.
//   int WARPS_M, WARPS_N
#pragma once

#include "kernels/cuda/mma/copies_i8.cuh"
#include "kernels/cuda/mma/matrices.cuh"
#include "kernels/cuda/mma/warps.cuh"

namespace tw::cuda::product {

struct Sums : WarpTile
{
    static constexpr bool AHEAD = true, FETCHES_FIRST = false, ADDRESSES = true;
    static constexpr int PARTS = STEP / 32, AT_ONCE = PARTS, BLOCKS_N = WN / 16;
    struct Factors
    {
        u32 a[BLOCKS_M][4], b[BLOCKS_N][4];
    };
    using Values = Sums16[BLOCKS_M][BLOCKS_N];
    u32 aAt, bAt; // this lane's places in the tiles, at their first steps of k and the warp's first rows
    TW_INLINE explicit Sums(u8*)
    {
        aAt = A_ALONG_K ? Place<true, TILE_M>::unit(row + factorRow(lane), lane / 16)
                        : Place<false, TILE_M>::unit(factorStep(lane), row / 16);
        bAt = B_ALONG_K ? Place<true, TILE_N>::unit(column + factorRow(lane), lane / 16)
                        : Place<false, TILE_N>::unit(factorStep(lane), column / 16);
    }
    TW_INLINE void take(Factors& f, u32 stage, int k) const
    {
        u32 const as = stage, bs = as + Matrices::A_BYTES;
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
            loadFactors<A_ALONG_K>(f.a[i], A_ALONG_K ? as + (aAt ^ k * 32) + i * 16 * STEP
                                                     : as + (aAt ^ i * 16) + k * 32 * TILE_M);
#pragma unroll
        for (int j = 0; j < BLOCKS_N; ++j)
            loadFactors<B_ALONG_K>(f.b[j], B_ALONG_K ? bs + (bAt ^ k * 32) + j * 16 * STEP
                                                     : bs + (bAt ^ j * 16) + k * 32 * TILE_N);
    }
    static TW_INLINE void add(Values& sum, Factors const& f)
    {
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int j = 0; j < BLOCKS_N; ++j)
                sum[i][j].add(f.a[i], f.b[j]);
    }
    // Four of 16 rows.
    static TW_INLINE i32 const* four(Values const& sum, int i, int j)
    {
        return sum[i][j / 2].d[j % 2];
    }
};

} // namespace tw::cuda::product
