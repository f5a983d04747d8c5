// SPDX-License-Identifier: Apache-2.0
// Sums of products in FP32.
#pragma once

#include "kernels/cuda/conv/mma_f32_tiles.cuh"

#define TW_TF32 0

namespace tw::cuda::conv_f32 {

// Each warp of a slice has 64 rows and 32 columns: a lane every 8th and every 4th of them. Lanes 2 i and 2 i + 1 read the
// same rows, lanes i and i ^ 2 the same columns: else loads of 16 bytes take twice as long.
constexpr int WARPS_M = TILE_M / 64, WARPS_N = WARPS / WARPS_M;
constexpr int PITCH = TILE_N + 4;
struct Sums
{
    float d[8][8] = {};
    int row, column, first; // of this lane: in the tile, and in k by 4
    TW_INLINE Sums(int warp)
    {
        int const w = warp % WARPS, lane = threadIdx.x % 32;
        row = w % WARPS_M * 64 + lane / 2 % 8;
        column = w / WARPS_M * 32 + lane % 2 + lane / 16 * 2;
        first = warp / WARPS * (8 / SLICES);
    }
    // What four places of k bring: of this lane's rows and columns.
    struct Part
    {
        float4 x[8], f[8];
    };
    TW_INLINE void take(Part& part, u8 const* stage, int unit) const
    {
        float4 const* const x = reinterpret_cast<float4 const*>(stage + row * 128);
        float4 const* const f = reinterpret_cast<float4 const*>(stage + X_BYTES + column * 128);
        int const k = first + unit, turn = row & 7, even = column & 7;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            part.x[i] = x[i * 64 + (k ^ turn)];
#pragma unroll
        for (int j = 0; j < 8; ++j)
            part.f[j] = f[j * 32 + (k ^ even ^ (j % 2 ? 4 : 0))];
    }
    TW_INLINE void add(Part const& part)
    {
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i)
                d[i][j] = fmaf(part.x[i].x, part.f[j].x, d[i][j]);
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i)
                d[i][j] = fmaf(part.x[i].y, part.f[j].y, d[i][j]);
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i)
                d[i][j] = fmaf(part.x[i].z, part.f[j].z, d[i][j]);
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i)
                d[i][j] = fmaf(part.x[i].w, part.f[j].w, d[i][j]);
    }
    TW_INLINE void put(u32 to, int) const
    {
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < 8; ++j)
                storeShared(to + ((row + i * 8) * PITCH + column + j * 4) * 4, __float_as_uint(d[i][j]));
    }
};

} // namespace tw::cuda::conv_f32
