// SPDX-License-Identifier: Apache-2.0
// A warp has 4 channels, a lane 2 ROWS outputs of a column.
#pragma once

#include "families/convolution/cuda_conv_depthwise_tiles.cuh"

namespace tw::ops::conv_f16 {

struct Worker
{
    float4 bias;
    float4 f[HELD]; // the filter, where it fits into registers
    T const* filters;
    TW_INLINE void begin(TileParams const& p, int vector0)
    {
        int const vector = vector0 + threadIdx.x / 32, c = (vector < p.vectors ? vector : 0) * V;
        filters = static_cast<T const*>(p.filters) + c;
        bias = *reinterpret_cast<float4 const*>(static_cast<float const*>(p.bias) + c);
        if constexpr (HELD > 1)
#pragma unroll
            for (int i = 0; i < R * S; ++i)
                f[i] = *reinterpret_cast<float4 const*>(filters + i64(i) * p.vectors * V);
    }
    TW_INLINE bool compute(TileParams const& p, Tile const& t, u32 tile, u32 staged, int vector0) const
    {
        constexpr int TALL = ROWS * 2, SEEN = (TALL - 1) * STEP_H + (R - 1) * DIL_H + 1;
        int const vector = threadIdx.x / 32, lane = threadIdx.x & 31, w = lane % TILE_W, h0 = lane / TILE_W * TALL;
        i64 const step = i64(p.vectors) * V;
        float sum[TALL][4];
#pragma unroll
        for (int o = 0; o < TALL; ++o) {
            sum[o][0] = bias.x;
            sum[o][1] = bias.y;
            sum[o][2] = bias.z;
            sum[o][3] = bias.w;
        }
#pragma unroll
        for (int s = 0; s < S; ++s) {
            u32 const from = tile + h0 * STEP_H * ROW + placeOf<STEP_W>(w * STEP_W + s * DIL_W, vector);
            Unit x[SEEN];
#pragma unroll
            for (int i = 0; i < SEEN; ++i) {
                bool isUsed = false;
#pragma unroll
                for (int o = 0; o < TALL; ++o)
                    isUsed =
                        isUsed || (i >= o * STEP_H && (i - o * STEP_H) % DIL_H == 0 && (i - o * STEP_H) / DIL_H < R);
                if (isUsed)
                    x[i] = loadSharedUnit(from + i * ROW);
            }
#pragma unroll
            for (int r = 0; r < R; ++r) {
                float4 const k = HELD > 1 ? f[HELD > 1 ? r * S + s : 0]
                                          : *reinterpret_cast<float4 const*>(filters + (r * S + s) * step);
#pragma unroll
                for (int o = 0; o < TALL; ++o) {
                    Unit const& v = x[o * STEP_H + r * DIL_H];
                    sum[o][0] = fmaf(__uint_as_float(v.v[0]), k.x, sum[o][0]);
                    sum[o][1] = fmaf(__uint_as_float(v.v[1]), k.y, sum[o][1]);
                    sum[o][2] = fmaf(__uint_as_float(v.v[2]), k.z, sum[o][2]);
                    sum[o][3] = fmaf(__uint_as_float(v.v[3]), k.w, sum[o][3]);
                }
            }
        }
#pragma unroll
        for (int o = 0; o < TALL; ++o) {
            Unit r = {}, y;
            if constexpr (RESIDUAL)
                r = residualAt(p, t, h0 + o, w, vector0 + vector);
#pragma unroll
            for (int j = 0; j < 4; ++j)
                y.v[j] = __float_as_uint(epilogue(sum[o][j], __uint_as_float(r.v[j])));
            storeShared(staged + (h0 + o) * ROW_Y + placeOf<1>(w, vector), y);
        }
        return false;
    }
};
TW_INLINE void computeAgain(TileParams const&, Tile const&, u32, int) {}

} // namespace tw::ops::conv_f16
