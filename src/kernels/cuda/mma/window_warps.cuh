// SPDX-License-Identifier: Apache-2.0
// What a warp has of a convolution's tile where mma.sync multiplies: 32 rows.
//   int SLICES   groups of warps that share each step's k
#pragma once

#include "kernels/cuda/mma/windows.cuh"

namespace tw::cuda::product {

constexpr int WARPS = 8 / SLICES, WARPS_M = TILE_M / 32, WARPS_N = WARPS / WARPS_M, WARP_N = TILE_N / WARPS_N;
constexpr int PITCH = TILE_N + 8; // of sums: halves of a warp store 8 bytes each without conflicts
struct WindowWarps
{
    static constexpr bool AHEAD = false, ADDRESSES = true;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, slice = warp / WARPS;
    int const row = warp % WARPS % WARPS_M * 32, column = warp % WARPS / WARPS_M * WARP_N; // its first ones
    // This lane's part of the first 16 rows of x, and of 16 filters, 32 bytes of k. That of others is so many rows further,
    // and of the next bytes k two units, whose bits of an address are those of no row.
    u32 const firstX = kept(unitAt(row + lane % 16, slice*(8 / SLICES) + lane / 16)),
              firstF = kept(unitAt(column + lane / 16 * 8 + lane % 8, slice*(8 / SLICES) + lane / 8 % 2));
    TW_INLINE u32 placeX(u32 xs, int i, int k) const { return ((xs + firstX) ^ (k * 32)) + i * 16 * ROW_BYTES; }
    TW_INLINE u32 placeF(u32 fs, int j, int k) const { return ((fs + firstF) ^ (k * 32)) + j * 16 * ROW_BYTES; }
    // v(i, j, h, e): sum e of row h of block i, j.
    template <class V>
    TW_INLINE void putPairs(u32 to, V const& v) const
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < WARP_N / 8; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    storeTwo(to + ((row + i * 16 + h * 8 + lane / 4) * PITCH + column + j * 8 + lane % 4 * 2) * 4,
                             v(i, j, h, 0), v(i, j, h, 1));
    }
};

} // namespace tw::cuda::product
