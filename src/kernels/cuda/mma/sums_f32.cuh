// SPDX-License-Identifier: Apache-2.0
// Sums of products of matrices of FP32, exact. A thread has ROWS x COLUMNS of them.
//   int ROWS, COLUMNS
#pragma once

#include "kernels/cuda/mma/copies_f32.cuh"
#include "kernels/cuda/mma/matrices.cuh"

namespace tw::cuda::product {

constexpr int TY = TILE_M / ROWS, TX = TILE_N / COLUMNS;
constexpr int WARPS_X = TX / 8; // a warp: 4 x 8 threads
// Rows of thread t of T: t, t + T, ... where k is contiguous, else fours.
template <bool ALONG_K, int T>
TW_INLINE constexpr int rowAt(int t, int i)
{
    return ALONG_K ? t + i * T : t * 4 + i / 4 * (T * 4) + i % 4;
}
// Four steps of k, from 4 u on.
template <bool ALONG_K, int TILE, int R>
TW_INLINE void takeRows(float const* tile, int t, int u, float (&f)[R][4])
{
    constexpr int T = TILE / R;
    using At = Place<ALONG_K, TILE>;
    if constexpr (ALONG_K) {
#pragma unroll
        for (int i = 0; i < R; ++i) {
            // Eight rows further a unit lies at the same place.
            int const at = T % 8 == 0 ? At::unit(t, u) + i * T * STEP : At::unit(t + i * T, u);
            float4 const v = *reinterpret_cast<float4 const*>(tile + at);
            f[i][0] = v.x;
            f[i][1] = v.y;
            f[i][2] = v.z;
            f[i][3] = v.w;
        }
    } else {
#pragma unroll
        for (int q = 0; q < 4; ++q)
#pragma unroll
            for (int i = 0; i < R; i += 4) {
                float4 const v = *reinterpret_cast<float4 const*>(tile + At::number(u * 4 + q, rowAt<false, T>(t, i)));
                f[i][q] = v.x;
                f[i + 1][q] = v.y;
                f[i + 2][q] = v.z;
                f[i + 3][q] = v.w;
            }
    }
}
struct Sums
{
    static constexpr bool AHEAD = false, ADDRESSES = false;
    using Values = float[ROWS][COLUMNS];
    float const* tiles;
    int tx, ty;
    TW_INLINE explicit Sums(u8* shared) : tiles(reinterpret_cast<float const*>(shared))
    {
        int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        tx = warp % WARPS_X * 8 + lane % 8;
        ty = warp / WARPS_X * 4 + lane / 8;
    }
    TW_INLINE void add(Values& sum, u32 stage) const
    {
        float const *const as = tiles + stage / 4, *const bs = as + Matrices::A_BYTES / 4;
#pragma unroll
        for (int u = 0; u < STEP / 4; ++u) {
            float x[ROWS][4], w[COLUMNS][4];
            takeRows<A_ALONG_K, TILE_M>(as, ty, u, x);
            takeRows<B_ALONG_K, TILE_N>(bs, tx, u, w);
#pragma unroll
            for (int q = 0; q < 4; ++q)
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
                        sum[i][j] = fmaf(x[i][q], w[j][q], sum[i][j]);
        }
    }
    // A thread's ROWS rows and GROUPS groups of EACH columns, which are APART.
    static constexpr int GROUPS = COLUMNS / 4, EACH = 4, APART = B_ALONG_K ? TX : 1;
    TW_INLINE int rowOf(int i) const
    {
        return rowAt<A_ALONG_K, TY>(ty, i);
    }
    TW_INLINE int groupOf(int j) const
    {
        return j * TX + tx;
    }
    static TW_INLINE int columnOf(int group)
    {
        return rowAt<B_ALONG_K, TX>(group % TX, group / TX * 4);
    }
    static TW_INLINE float const* group(Values const& sum, int i, int j)
    {
        return &sum[i][j * 4];
    }
};

} // namespace tw::cuda::product
