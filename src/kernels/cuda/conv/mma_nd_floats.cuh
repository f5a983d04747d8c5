// SPDX-License-Identifier: Apache-2.0
// Sums of products of FP16 and FP32 in convolutions over up to three axes.
//   type Element; float activate(float); int TILE_M, TILE_N, VECTOR; bool IS_HALF, TF32X3, ALIGNED
#pragma once

#include "kernels/cuda/common/factors.cuh"
#include "kernels/cuda/conv/mma_nd_places.cuh"

namespace tw::cuda::conv_nd {

using Args = ArgsOf<Element>;

// Each warp has 32 rows; registers are laid out as mma.sync wants them.
struct Sums
{
    float d[2][WARP_N / 8 * 4] = {};
    int row, column; // of this warp in the tile
    TW_INLINE Sums(int warp) : row(warp % WARPS_M * 32), column(warp / WARPS_M * WARP_N) {}
    TW_INLINE void add(u32 xs, u32 fs, int lane)
    {
        if constexpr (IS_HALF) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
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
                        mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                        mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
                    }
                }
            }
        } else {
            float late[TF32X3 ? 2 : 1][TF32X3 ? WARP_N / 8 * 4 : 1] = {}; // tensor cores cut off what long sums lose
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                Factors<4> fx[2];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float v[4];
                    loadBlocks(v, xs + unitAt(row + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        fx[i].set(e, v[e]);
                }
#pragma unroll
                for (int j = 0; j < WARP_N / 16; ++j) {
                    float v[4];
                    loadBlocks(v, fs + unitAt(column + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        Factors<2> b;
                        b.set(0, v[h * 2]);
                        b.set(1, v[h * 2 + 1]);
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

// Four columns of y, or as many as there are.
TW_INLINE float valueOf(f16 v)
{
    return halfToFloat(v);
}
TW_INLINE float valueOf(float v)
{
    return v;
}
TW_INLINE void addFour(float (&v)[4], Element const* from, int left)
{
    if constexpr (ALIGNED && IS_HALF) {
        uint2 const u = *reinterpret_cast<uint2 const*>(from);
        v[0] += lowHalf(u.x);
        v[1] += highHalf(u.x);
        v[2] += lowHalf(u.y);
        v[3] += highHalf(u.y);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (ALIGNED || e < left)
                v[e] += valueOf(from[e]);
    }
}
TW_INLINE void putFour(Element* to, float const (&v)[4], int left)
{
    if constexpr (IS_HALF) {
        uint2 const u{packHalves(v[0], v[1]), packHalves(v[2], v[3])};
        if constexpr (ALIGNED) {
            *reinterpret_cast<uint2*>(to) = u;
        } else {
            u32 const both[2] = {u.x, u.y};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (e < left)
                    reinterpret_cast<u16*>(to)[e] = u16(both[e / 2] >> e % 2 * 16);
        }
    } else if constexpr (ALIGNED) {
        *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (e < left)
                reinterpret_cast<float*>(to)[e] = v[e];
    }
}
// What a thread does with four columns of each of its rows of y, or as many as there are (`left`), from `filter` on.
struct Finish
{
    float bias[4] = {};
    TW_INLINE Finish(Args const& a, int filter, int left)
    {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (a.bias && e < left)
                bias[e] = a.bias[filter + e];
    }
    // `from`: the sums; `split` blocks have a part of each.
    TW_INLINE void put(Args const& a, u32 from, int split, i64 pixelY, int filter, int left) const
    {
        float v[4] = {bias[0], bias[1], bias[2], bias[3]};
        for (int r = 0; r < split; ++r) {
            float4 const part = split > 1 ? loadFourOf(addressIn(from, r)) : loadFour(from);
            v[0] += part.x;
            v[1] += part.y;
            v[2] += part.z;
            v[3] += part.w;
        }
        if (a.residual)
            addFour(v, a.residual + pixelY * a.pixelResidual + filter, left);
#pragma unroll
        for (int e = 0; e < 4; ++e)
            v[e] = activate(v[e]);
        putFour(a.y + pixelY * a.pixelY + filter, v, left);
    }
};

} // namespace tw::cuda::conv_nd
