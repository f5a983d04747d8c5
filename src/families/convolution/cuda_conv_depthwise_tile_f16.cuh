// SPDX-License-Identifier: Apache-2.0
// A warp has 8 channels of 16 strips, a lane two of them: `mma` by a matrix [8 columns of x and 2 channels, 4 columns
// of y and 2 channels] per row of the filter, which holds the filter's taps along a band and zeros elsewhere. What a
// zero makes of an infinity or NaN of the other channel is not part of the result: such tiles are computed again.
#pragma once

#include "families/convolution/cuda_conv_depthwise_tiles.cuh"

namespace tw::ops::conv_f16 {

TW_INLINE void multiply(float (&d)[4], u32 a0, u32 a1, u32 b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." TW_NARROW_PTX "." TW_NARROW_PTX
                 ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(b));
}
TW_INLINE Unit finished(TileParams const& p, Tile const& t, int h, int w, int vector, float (&v)[8])
{
    Unit r = {}, y;
    if constexpr (RESIDUAL)
        r = residualAt(p, t, h, w, vector);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        y.v[i] = packHalves(epilogue(v[i * 2], lowHalf(r.v[i])), epilogue(v[i * 2 + 1], highHalf(r.v[i])));
    return y;
}
__device__ __noinline__ void computeAgain(TileParams const& p, Tile const& t, u32 tile, int vector0)
{
    int const vector = threadIdx.x % VECTORS, c = (vector0 + vector) * V;
    if (vector0 + vector >= p.vectors)
        return;
    T const* const filters = static_cast<T const*>(p.filters) + c;
    float const* const bias = static_cast<float const*>(p.bias) + c;
    i64 const step = i64(p.vectors) * V;
#pragma unroll 1
    for (int i = threadIdx.x / VECTORS; i < TILE_H * TILE_W; i += 32) {
        int const h = i / TILE_W, w = i % TILE_W;
        if (t.h0 + h >= p.outH || t.w0 + w >= p.outW)
            continue;
        float v[8];
#pragma unroll
        for (int j = 0; j < 8; ++j)
            v[j] = bias[j];
#pragma unroll 1
        for (int tap = 0; tap < R * S; ++tap) {
            int const r = tap / S, s = tap % S;
            Unit const f = *reinterpret_cast<Unit const*>(filters + tap * step);
            Unit const x =
                loadSharedUnit(tile + (h * STEP_H + r * DIL_H) * ROW + placeOf<STEP_W>(w * STEP_W + s * DIL_W, vector));
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                v[j * 2] = fmaf(lowHalf(x.v[j]), lowHalf(f.v[j]), v[j * 2]);
                v[j * 2 + 1] = fmaf(highHalf(x.v[j]), highHalf(f.v[j]), v[j * 2 + 1]);
            }
        }
        Unit const y = finished(p, t, h, w, vector0 + vector, v);
        i64 const pixel = (i64(t.image) * p.outH + t.h0 + h) * p.outW + t.w0 + w;
        *reinterpret_cast<Unit*>(static_cast<T*>(p.y) + pixel * p.pixelY + c) = y;
    }
}
struct Worker
{
    u32 band[R][GROUPS][4];
    float2 bias[4];
    TW_INLINE void begin(TileParams const& p, int vector0)
    {
        int const g = (threadIdx.x & 31) / 4, q = threadIdx.x % 4;
        T const* const filters = static_cast<T const*>(p.filters) + channelOf(p, vector0);
        i64 const step = i64(p.vectors) * V;
        float2 const* const from =
            reinterpret_cast<float2 const*>(static_cast<float const*>(p.bias) + channelOf(p, vector0));
#pragma unroll
        for (int j = 0; j < 4; ++j)
            bias[j] = from[j];
        // Row k, column n of a band: column q of its group and channel k % 2 of x, output g / 2 and channel g % 2.
        u32 const mask = g % 2 ? 0xFFFF0000u : 0xFFFFu;
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) {
                int const at = i * 4 + q - g / 2 * STEP_W, s = at / DIL_W;
                Unit f = Unit{};
                if (at >= 0 && s < S && at % DIL_W == 0)
                    f = *reinterpret_cast<Unit const*>(filters + (r * S + s) * step);
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    band[r][i][j] = f.v[j] & mask;
            }
    }
    static TW_INLINE int channelOf(TileParams const& p, int vector0)
    {
        int const vector = vector0 + threadIdx.x / 32;
        return (vector < p.vectors ? vector : 0) * V;
    }
    // Whether a row of x is part of an output.
    static TW_INLINE constexpr bool isUsed(int i)
    {
        for (int o = 0; o < ROWS; ++o)
            if (i >= o * STEP_H && (i - o * STEP_H) % DIL_H == 0 && (i - o * STEP_H) / DIL_H < R)
                return true;
        return false;
    }
    TW_INLINE bool compute(TileParams const& p, Tile const& t, u32 tile, u32 staged, int vector0) const
    {
        int const vector = threadIdx.x / 32, g = (threadIdx.x & 31) / 4, q = threadIdx.x % 4;
        float sum[ROWS][4][4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float2 const b = bias[j];
#pragma unroll
            for (int o = 0; o < ROWS; ++o) {
                sum[o][j][0] = sum[o][j][2] = b.x;
                sum[o][j][1] = sum[o][j][3] = b.y;
            }
        }
        // Moves registers once to where all products take them: plain copies are made anew for each.
        u32 const zero = u32(p.pad);
        // Two strips, neighbours or one below the other.
        constexpr int PER = IS_PAIR ? 2 : 1, LOADS = IS_PAIR ? GROUPS + STEP_W : GROUPS;
        int const w0 = g % (ACROSS / PER) * (4 * PER), h0 = g / (ACROSS / PER) * ROWS;
        int const w1 = w0 + (IS_PAIR ? 4 : 0), h1 = h0 + (IS_PAIR ? 0 : 8 / ACROSS * ROWS);
        u32 from[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            from[k] = tile + h0 * STEP_H * ROW + placeOf<STEP_W>(w0 * STEP_W + k * 4 + q, vector);
#pragma unroll
        for (int i = 0; i < (ROWS - 1) * STEP_H + (R - 1) * DIL_H + 1; ++i) {
            if (!isUsed(i))
                continue;
            Unit x[IS_PAIR ? LOADS : LOADS * 2]; // columns of the first strip, and the second's that are others
#pragma unroll
            for (int k = 0; k < LOADS; ++k) {
                if (k < GROUPS || k >= STEP_W)
                    x[k] = loadSharedUnit(from[k] + i * ROW);
                if (!IS_PAIR)
                    x[k + LOADS] = loadSharedUnit(from[k] + (i + 8 / ACROSS * ROWS * STEP_H) * ROW);
            }
            // As the products take them, moved once for all of them.
#pragma unroll
            for (int k = 0; k < GROUPS; k += 2)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    constexpr int SECOND = IS_PAIR ? STEP_W : LOADS;
                    u32 both[4];
                    both[0] = x[k].v[j] ^ zero;
                    both[1] = x[k + SECOND].v[j] ^ zero;
                    if (k + 1 < GROUPS) {
                        both[2] = x[k + 1].v[j] ^ zero;
                        both[3] = x[k + 1 + SECOND].v[j] ^ zero;
                    }
#pragma unroll
                    for (int o = 0; o < ROWS; ++o) {
                        int const at = i - o * STEP_H, r = at / DIL_H;
                        if (at < 0 || at % DIL_H != 0 || r >= R)
                            continue;
                        if (k + 1 < GROUPS)
                            mma(sum[o][j], both, band[r][k][j], band[r][k + 1][j]);
                        else
                            multiply(sum[o][j], both[0], both[1], band[r][k][j]);
                    }
                }
        }
        float odd[4] = {}; // NaN from any NaN or infinity
        u32 const to[2] = {staged + h0 * ROW_Y + placeOf<1>(w0 + q, vector),
                           staged + h1 * ROW_Y + placeOf<1>(w1 + q, vector)};
#pragma unroll
        for (int o = 0; o < ROWS; ++o)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float v[8];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    v[j * 2] = sum[o][j][half * 2];
                    v[j * 2 + 1] = sum[o][j][half * 2 + 1];
                }
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    odd[j % 4] = fmaf(v[j], 0.0f, odd[j % 4]);
                int const h = (half ? h1 : h0) + o;
                storeShared(to[half] + o * ROW_Y, finished(p, t, h, half ? w1 + q : w0 + q, vector0 + vector, v));
            }
        float const all = odd[0] + odd[1] + odd[2] + odd[3];
        return all != all;
    }
};

} // namespace tw::ops::conv_f16
