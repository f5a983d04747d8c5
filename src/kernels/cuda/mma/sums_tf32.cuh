// SPDX-License-Identifier: Apache-2.0
// Sums of products of matrices of FP32 by mma.sync, 3xTF32 or rounded to TF32.
//   bool TF32X3; int WARPS_M, WARPS_N
#pragma once

#include "kernels/cuda/common/factors.cuh"
#include "kernels/cuda/mma/copies_f32.cuh"
#include "kernels/cuda/mma/matrices.cuh"
#include "kernels/cuda/mma/warps.cuh"

namespace tw::cuda::product {

struct Sums : WarpTile
{
    static constexpr bool AHEAD = false, ADDRESSES = false;
    static constexpr int BLOCKS_N = WN / 8;
    using Values = float[BLOCKS_M][BLOCKS_N][4];
    float const* tiles;
    TW_INLINE explicit Sums(u8* shared) : tiles(reinterpret_cast<float const*>(shared)) {}
    // Numbers t and t + 4 of k (t = lane % 4) from 8 u on, of rows g and g + 8 (g = lane / 4) of 16 of a.
    TW_INLINE void takeA(float const* tile, int row, int u, Factors<4>& f) const
    {
        using At = Place<A_ALONG_K, TILE_M>;
        float v[4];
        if constexpr (A_ALONG_K) {
            loadBlocks(v, sharedAddress(tile + At::unit(row + lane % 16, u * 2 + lane / 16)));
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                v[i] = tile[At::number(u * 8 + lane % 4 + i / 2 * 4, row + lane / 4 + i % 2 * 8)];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
            f.set(i, v[i]);
    }
    // The same of columns g, then of columns g + 8.
    TW_INLINE void takeB(float const* tile, int column, int u, Factors<2> (&f)[2]) const
    {
        using At = Place<B_ALONG_K, TILE_N>;
        float v[4];
        if constexpr (B_ALONG_K) {
            loadBlocks(v, sharedAddress(tile + At::unit(column + lane / 16 * 8 + lane % 8, u * 2 + lane / 8 % 2)));
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                v[i] = tile[At::number(u * 8 + lane % 4 + i % 2 * 4, column + lane / 4 + i / 2 * 8)];
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
            f[i / 2].set(i % 2, v[i]);
    }
    TW_INLINE void add(Values& sum, u32 stage) const
    {
        float const *const as = tiles + stage / 4, *const bs = as + Matrices::A_BYTES / 4;
        float part[TF32X3 ? BLOCKS_M : 1][TF32X3 ? BLOCKS_N : 1][4] = {};
#pragma unroll
        for (int u = 0; u < STEP / 8; ++u) {
            Factors<4> x[BLOCKS_M];
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
                takeA(as, row + i * 16, u, x[i]);
#pragma unroll
            for (int j = 0; j < BLOCKS_N; j += 2) {
                Factors<2> w[2];
                takeB(bs, column + j * 8, u, w);
#pragma unroll
                for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        if constexpr (TF32X3)
                            multiply(part[i][j + h], x[i], w[h]);
                        else
                            multiply(sum[i][j + h], x[i], w[h]);
                    }
            }
        }
        if constexpr (TF32X3) {
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int j = 0; j < BLOCKS_N; ++j)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        sum[i][j][e] += part[i][j][e];
        }
    }
    // A thread's ROWS rows and GROUPS groups of EACH columns.
    static constexpr int GROUPS = BLOCKS_N, EACH = 2, APART = 1;
    TW_INLINE int rowOf(int i) const
    {
        return row + i * 8 + lane / 4;
    }
    TW_INLINE int groupOf(int j) const
    {
        return column / 2 + j * 4 + lane % 4;
    }
    static TW_INLINE int columnOf(int group)
    {
        return group * 2;
    }
    static TW_INLINE float const* group(Values const& sum, int i, int j)
    {
        return &sum[i / 2][j][i % 2 * 2];
    }
};

} // namespace tw::cuda::product
