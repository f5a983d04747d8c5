// SPDX-License-Identifier: Apache-2.0
// Sums of products by mma.sync, factors rounded to TF32.
#pragma once

#include "kernels/cuda/conv/mma_f32_tiles.cuh"

#define TW_TF32 1

namespace tw::cuda::conv_f32 {

// Each warp of a slice has 32 rows; registers are laid out as mma.sync wants them.
constexpr int WARPS_M = TILE_M / 32, WARPS_N = WARPS / WARPS_M, WARP_N = TILE_N / WARPS_N;
constexpr int PITCH = TILE_N + 8; // of sums: halves of a warp store 8 bytes each without conflicts
TW_INLINE u32 rounded(u32 v)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(v)));
    return r;
}
TW_INLINE void multiply(float (&d)[4], u32 const (&a)[4], u32 b0, u32 b1) // d [16, 8] += a [16, 8] b [8, 8]
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
struct Sums
{
    float d[2][WARP_N / 8 * 4] = {};
    int row, column, first; // of this warp: in the tile, and in k by 8
    TW_INLINE Sums(int warp)
    {
        int const w = warp % WARPS;
        row = w % WARPS_M * 32;
        column = w / WARPS_M * WARP_N;
        first = warp / WARPS * (4 / SLICES);
    }
    TW_INLINE void add(u8 const* x, u8 const* f, int lane)
    {
        u32 const xs = sharedAddress(x), fs = sharedAddress(f);
#pragma unroll
        for (int i = 0; i < 4 / SLICES; ++i) {
            int const k = first + i;
            u32 fx[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                loadMatrix4(fx[i], xs + unitAt(row + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    fx[i][e] = rounded(fx[i][e]);
            }
#pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j) {
                u32 b[4];
                loadMatrix4(b, fs + unitAt(column + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    multiply(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                    multiply(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
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
                             d[i][j * 4 + h * 2], d[i][j * 4 + h * 2 + 1]);
    }
};

} // namespace tw::cuda::conv_f32
