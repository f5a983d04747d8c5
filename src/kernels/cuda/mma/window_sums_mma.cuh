// SPDX-License-Identifier: Apache-2.0
// Sums of products of FP16 and FP32 in convolutions by mma.sync. After places_*.cuh.
//   bool IS_HALF, TF32X3, ROUNDED   filters are TF32 numbers already
#pragma once

#include "kernels/cuda/common/factors.cuh"
#include "kernels/cuda/mma/window_warps.cuh"

namespace tw::cuda::product {

struct Sums : WindowWarps
{
    using Values = float[2][WARP_N / 8 * 4];
    TW_INLINE explicit Sums(u8*) {}
    TW_INLINE void add(Values& d, u32 xs) const
    {
        u32 const fs = xs + Windows::A_BYTES;
        if constexpr (IS_HALF) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
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
                        mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                        mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
                    }
                }
            }
        } else {
            float late[TF32X3 ? 2 : 1][TF32X3 ? WARP_N / 8 * 4 : 1] = {}; // tensor cores cut off what long sums lose
#pragma unroll
            for (int k = 0; k < 4 / SLICES; ++k) {
                Factors<4> fx[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float v[4];
                    loadBlocks(v, placeX(xs, i, k));
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        fx[i].set(e, v[e]);
                }
#pragma unroll
                for (int j = 0; j < WARP_N / 16; ++j) {
                    float v[4];
                    loadBlocks(v, placeF(fs, j, k));
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        Factors<2> b;
#pragma unroll
                        for (int e = 0; e < 2; ++e)
                            if constexpr (ROUNDED)
                                b.high[e] = __float_as_uint(v[h * 2 + e]);
                            else
                                b.set(e, v[h * 2 + e]);
#pragma unroll
                        for (int i = 0; i < 2; ++i) {
                            float* const to =
                                TF32X3 ? &late[TF32X3 ? i : 0][TF32X3 ? j * 8 + h * 4 : 0] : &d[i][j * 8 + h * 4];
                            multiply(*reinterpret_cast<float(*)[4]>(to), fx[i], b);
                        }
                    }
                }
            }
            if constexpr (TF32X3) {
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int e = 0; e < WARP_N / 2; ++e)
                        d[i][e] += late[i][e];
            }
        }
    }
    TW_INLINE void put(Values const& d, u32 to) const
    {
        putPairs(to, [&](int i, int j, int h, int e) { return d[i][j * 4 + h * 2 + e]; });
    }
};

} // namespace tw::cuda::product
