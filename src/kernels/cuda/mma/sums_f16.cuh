// SPDX-License-Identifier: Apache-2.0
// Sums of products of matrices of FP16 by mma.sync.
//   int WARPS_M, WARPS_N
#pragma once

#include "kernels/cuda/mma/copies_f16.cuh"
#include "kernels/cuda/mma/matrices.cuh"
#include "kernels/cuda/mma/warps.cuh"

namespace tw::cuda::product {

struct Sums : WarpTile
{
    static constexpr bool AHEAD = true, FETCHES_FIRST = false, ADDRESSES = true;
    static constexpr int PARTS = STEP / 16, AT_ONCE = PARTS, BLOCKS_N = WN / 8;
    struct Factors
    {
        u32 a[BLOCKS_M][4], b[BLOCKS_N / 2][4];
    };
    using Values = float[BLOCKS_M][BLOCKS_N * 4];
    u32 aAt, bAt; // this lane's places in the tiles, at their first steps of k and the warp's first rows
    TW_INLINE explicit Sums(u8*)
    {
        aAt = A_ALONG_K ? Place<true, TILE_M>::unit(row + lane % 16, lane / 16)
                        : Place<false, TILE_M>::unit(lane / 16 * 8 + lane % 8, row / 8 + lane / 8 % 2);
        bAt = B_ALONG_K ? Place<true, TILE_N>::unit(column + lane / 16 * 8 + lane % 8, lane / 8 % 2)
                        : Place<false, TILE_N>::unit(lane % 16, column / 8 + lane / 16);
    }
    TW_INLINE void take(Factors& f, u32 stage, int k) const
    {
        u32 const as = stage, bs = as + Matrices::A_BYTES;
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i) {
            if constexpr (A_ALONG_K)
                loadMatrix4(f.a[i], as + (aAt ^ k * 32) + i * (16 * STEP * 2));
            else
                loadMatrix4Transposed(f.a[i], as + (aAt ^ i * 32) + k * (16 * TILE_M * 2));
        }
#pragma unroll
        for (int j = 0; j < BLOCKS_N / 2; ++j) {
            if constexpr (B_ALONG_K)
                loadMatrix4(f.b[j], bs + (bAt ^ k * 32) + j * (16 * STEP * 2));
            else
                loadMatrix4Transposed(f.b[j], bs + (bAt ^ j * 32) + k * (16 * TILE_N * 2));
        }
    }
    static TW_INLINE void add(Values& sum, Factors const& f)
    {
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int j = 0; j < BLOCKS_N / 2; ++j) {
                u32 const(&b)[4] = f.b[j];
                mma(*reinterpret_cast<float(*)[4]>(&sum[i][j * 8]), f.a[i], b[0], b[1]);
                mma(*reinterpret_cast<float(*)[4]>(&sum[i][j * 8 + 4]), f.a[i], b[2], b[3]);
            }
    }
    // Four of 16 rows.
    static TW_INLINE float const* four(Values const& sum, int i, int j)
    {
        return &sum[i][j * 4];
    }
};

} // namespace tw::cuda::product
