// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions by strips of outputs.
// After epilogue() and few_f16.cuh or few_f32.cuh.
//   int R, S, STEP_H, STEP_W, DILATION, COLUMNS, V, ROWS, SLICE, AHEAD, BLOCKS, kChannels, THREADS; bool RESIDUAL
#pragma once

#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::conv_f16 {

constexpr int IN = (COLUMNS - 1) * STEP_W + (S - 1) * DILATION + 1; // columns of x
constexpr int RING = (R + STEP_H - 1) / STEP_H;                     // rows of y that a row of x is part of, at most
constexpr int PERIOD = RING * STEP_H;
TW_INLINE u32 divide(u32 n, Div const& v)
{
    return (__umulhi(n, v.m) + n) >> v.s;
}
TW_INLINE Few take(T const* from)
{
    return *reinterpret_cast<Few const*>(from);
}
// Into L1 too: neighbours have most columns in common.
TW_INLINE void copyFew(u32 to, T const* from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(int(sizeof(Few))),
                 "r"(valid ? int(sizeof(Few)) : 0)
                 : "memory");
}
TW_INLINE void takeRow(u32 to, T const* row, i64 pixel, bool inside, bool const (&isColumn)[IN])
{
#pragma unroll
    for (int j = 0; j < IN; ++j) {
        copyFew(to + j * (THREADS * int(sizeof(Few))), row, inside && isColumn[j]);
        row += pixel;
    }
}
TW_KERNEL __launch_bounds__(THREADS, BLOCKS) depthwise(const __grid_constant__ StripParams p)
{
    waitForPrevious();
    releaseDependents();
    u32 const i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.count)
        return;
    u32 const pixels = i / SLICE, others = divide(pixels, p.wide), groups = divide(others, p.slices),
              image = divide(groups, p.tall);
    int const vector = int(others - groups * u32(p.slices.d)) * SLICE + int(i % SLICE), c = vector * V;
    if (vector >= p.vectors)
        return;
    int const q0 = int(pixels - others * u32(p.wide.d)) * COLUMNS, o0 = int(groups - image * u32(p.tall.d)) * ROWS;
    int const h0 = o0 * STEP_H - p.padH, w0 = q0 * STEP_W - p.padW;
    int const seen = (min(ROWS, p.outH - o0) - 1) * STEP_H + R; // rows of x
    T const* x = static_cast<T const*>(p.x) + ((i64(image) * p.h + h0) * p.w + w0) * p.pixelX + c;
    i64 const rowX = i64(p.w) * p.pixelX;
    i64 const first = (i64(image) * p.outH + o0) * p.outW + q0;
    T* y = static_cast<T*>(p.y) + first * p.pixelY + c;
    i64 const rowY = i64(p.outW) * p.pixelY;
    T const* residual = static_cast<T const*>(p.residual) + first * p.pixelResidual + c;
    bool isColumn[IN];
#pragma unroll
    for (int j = 0; j < IN; ++j)
        isColumn[j] = u32(w0 + j) < u32(p.w);
    // What a thread copies into shared memory is for itself.
    extern __shared__ __align__(16) unsigned char shared[];
    Few const* const mine = reinterpret_cast<Few const*>(shared) + threadIdx.x;
    u32 const to = sharedAddress(mine);
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) {
        takeRow(to + k * (IN * THREADS * int(sizeof(Few))), x, p.pixelX, u32(h0 + k) < u32(p.h) && k < seen, isColumn);
        copyCommit();
        x += rowX;
    }
    int at = 0; // of the row that comes next
    float f[R * S][V], bias[V];
    {
        T const* const filters = static_cast<T const*>(p.filters) + c;
        float const* const from = static_cast<float const*>(p.bias) + c;
        i64 const step = i64(kChannels);
#pragma unroll
        for (int t = 0; t < R * S; ++t)
            unpack(take(filters + t * step), f[t]);
#pragma unroll
        for (int e = 0; e < V; ++e)
            bias[e] = from[e];
    }
    float sum[RING][COLUMNS][V];
#pragma unroll
    for (int o = 0; o < RING; ++o)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
            for (int e = 0; e < V; ++e)
                sum[o][j][e] = 0;
#pragma unroll 1
    for (int k0 = 0; k0 < seen; k0 += PERIOD) {
#pragma unroll
        for (int m = 0; m < PERIOD; ++m) {
            int const k = k0 + m;
            if (m > 0 && k >= seen)
                break;
            constexpr int LAST = (R - 1) % STEP_H;
            bool const ends = m % STEP_H == LAST; // a row of y, from the R - 1st on
            Few rest[COLUMNS];
            if constexpr (RESIDUAL)
                if (ends && k >= R - 1) {
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
                        if (q0 + j < p.outW)
                            rest[j] = take(residual + j * p.pixelResidual);
                    residual += i64(p.outW) * p.pixelResidual;
                }
            copyWait<AHEAD - 1>();
            float v[IN][V];
#pragma unroll
            for (int j = 0; j < IN; ++j)
                unpack(mine[at + j * THREADS], v[j]);
            takeRow(to + at * int(sizeof(Few)), x, p.pixelX, u32(h0 + k + AHEAD) < u32(p.h) && k + AHEAD < seen,
                    isColumn);
            copyCommit();
            at = at == (AHEAD - 1) * (IN * THREADS) ? 0 : at + IN * THREADS;
            x += rowX;
#pragma unroll
            for (int r = R - 1; r >= 0; --r) {
                if ((m - r + PERIOD * 8) % STEP_H != 0)
                    continue;
                int const slot = (m - r + PERIOD * 8) / STEP_H % RING;
#pragma unroll
                for (int s = 0; s < S; ++s)
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                        for (int e = 0; e < V; ++e)
                            sum[slot][j][e] = fmaf(v[j * STEP_W + s * DILATION][e], f[r * S + s][e],
                                                   r == 0 && s == 0 ? bias[e] : sum[slot][j][e]);
                if (r == R - 1 && k >= R - 1) {
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
                        if (j == 0 || q0 + j < p.outW) {
                            float out[V], r[V] = {};
                            if constexpr (RESIDUAL)
                                unpack(rest[j], r);
#pragma unroll
                            for (int e = 0; e < V; ++e)
                                out[e] = epilogue(sum[slot][j][e], r[e]);
                            *reinterpret_cast<Few*>(y + j * p.pixelY) = packed(out);
                        }
                    y += rowY;
                }
            }
        }
    }
}

} // namespace tw::ops::conv_f16
