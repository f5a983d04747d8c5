// SPDX-License-Identifier: Apache-2.0
// FP16 convolutions by mma.sync. After an epilogue of FP16.
//   int TILE_M, TILE_N, STAGES, VECTOR, BLOCKS_PER_SM; bool NCHW
#pragma once

#include "kernels/cuda/common/epilogue_rows_f16.cuh"
#include "kernels/cuda/conv/mma_f16_params.h"

namespace tw::cuda::conv_f16 {

constexpr int THREADS = 256, WARPS_M = TILE_M / 32, WARPS_N = 8 / WARPS_M, WARP_N = TILE_N / WARPS_N;
constexpr u32 X_BYTES = TILE_M * 64, STAGE_BYTES = (TILE_M + TILE_N) * 64;
using Args = ArgsOf<f16>;
// Rows of 64 bytes; 8 rows at the same k lie in different banks.
TW_INLINE u32 unitAt(int row, int unit)
{
    return row * 64 + (unit ^ (row >> 1 & 3)) * 16;
}

// Where k stands, each step 32 further.
struct Taps
{
    int inner, middle, outer;
    TW_INLINE void move(Args const& a, int by)
    {
        inner += by;
        while (inner >= a.inner) {
            inner -= a.inner;
            if (++middle == a.middle) {
                middle = 0;
                ++outer;
            }
        }
    }
};
// A pixel's first tap.
struct Pixel
{
    i64 at;
    int h, w;
};
TW_INLINE Pixel pixelAt(Args const& a, int m)
{
    int const row = m / a.outW, image = row / a.outH;
    Pixel p;
    p.h = m < a.m ? (row - image * a.outH) * a.strideH - a.padH : -(1 << 28); // outside: zeros
    p.w = (m - row * a.outW) * a.strideW - a.padW;
    p.at = i64(image) * a.imageX;
    return p;
}
// Whether that tap is inside the image, and where.
TW_INLINE bool tapAt(Args const& a, Pixel const& p, Taps const& t, f16 const* x, f16 const*& from)
{
    int const h = p.h + (NCHW ? t.middle : t.outer) * a.dilationH, w = p.w + (NCHW ? t.inner : t.middle) * a.dilationW;
    int const c = NCHW ? t.outer : t.inner;
    from = x + p.at + h * a.rowX + w * a.columnX + c * a.channelX;
    return u32(h) < u32(a.h) && u32(w) < u32(a.w) && t.outer < a.outer;
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) convolve(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const base = sharedAddress(raw);
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    int const m0 = blockIdx.x * TILE_M, n0 = blockIdx.y * TILE_N, group = blockIdx.z;
    f16 const* const x = a.x + i64(group) * a.groupC * a.channelX;
    f16 const* const filters = a.filters + i64(group) * a.n * a.paddedK;
    u32 const biases = base + STAGES * STAGE_BYTES;
    releaseDependents();
    Output y = a;
    if constexpr (BIAS) {
        y.bias += group * a.n;
        BiasPart<TILE_N, THREADS> bias;
        bias.take(y, n0, tid);
        bias.put(biases, tid);
    }

    // x: each thread has one place in k and PIXELS rows.
    constexpr int PER_ROW = 32 / VECTOR, STEP = VECTOR == 1 ? 0 : THREADS / PER_ROW;
    constexpr int PIXELS = VECTOR == 1 ? 1 : TILE_M / (THREADS / PER_ROW),
                  LOADS = VECTOR == 1 ? TILE_M * 32 / THREADS : 1;
    int const row0 = VECTOR == 1 ? tid % TILE_M : tid / PER_ROW,
              k0 = VECTOR == 1 ? tid / TILE_M * LOADS : tid % PER_ROW * VECTOR;
    Pixel pixel[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; ++i)
        pixel[i] = pixelAt(a, m0 + row0 + i * STEP);
    Taps taps = {0, 0, 0};
    taps.move(a, k0);

    auto loadFilters = [&](int step, u32 to) {
#pragma unroll
        for (int i = 0; i < (TILE_N * 4 + THREADS - 1) / THREADS; ++i) {
            int const at = tid + i * THREADS, r = at / 4, u = at % 4;
            if (TILE_N * 4 % THREADS == 0 || at < TILE_N * 4)
                copyAsync16(to + unitAt(r, u), filters + i64(n0 + r) * a.paddedK + step * 32 + u * 8, n0 + r < a.n);
        }
    };
    auto copyX = [&](u32 to) { // VECTOR > 1
#pragma unroll
        for (int i = 0; i < PIXELS; ++i) {
            f16 const* from;
            bool const inside = tapAt(a, pixel[i], taps, x, from);
            u32 const at = to + unitAt(row0 + i * STEP, k0 / 8) + k0 % 8 * 2;
            if constexpr (VECTOR == 8)
                copyAsync16(at, from, inside);
            else if constexpr (VECTOR == 4)
                copyAsync8(at, from, inside);
            else
                copyAsync4(at, from, inside);
        }
        taps.move(a, 32);
    };
    u32 held[VECTOR == 1 ? LOADS / 2 : 1] = {};
    auto loadX = [&] { // VECTOR == 1: into registers
        Taps t = taps;
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            f16 const* from;
            u32 v = 0;
            if (tapAt(a, pixel[0], t, x, from))
                v = from->bits;
            if (i % 2)
                held[i / 2] |= v << 16;
            else
                held[i / 2] = v;
            t.move(a, 1);
        }
        taps.move(a, 32);
    };
    auto storeX = [&](u32 to) {
#pragma unroll
        for (int i = 0; i < LOADS / 8; ++i) {
            Unit u;
#pragma unroll
            for (int e = 0; e < 4; ++e)
                u.v[e] = held[i * 4 + e];
            storeShared(to + unitAt(row0, k0 / 8 + i), u);
        }
    };

    // The first steps; filters are constant, x may belong to the kernel before.
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s)
        if (s < a.stepsK)
            loadFilters(s, base + s * STAGE_BYTES + X_BYTES);
    waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < a.stepsK) {
            if constexpr (VECTOR == 1) {
                loadX();
                storeX(base + s * STAGE_BYTES);
            } else
                copyX(base + s * STAGE_BYTES);
        }
        copyCommit();
    }

    float d[2][WARP_N / 8 * 4] = {};
    int const warpM = warp % WARPS_M * 32, warpN = warp / WARPS_M * WARP_N;
    int stage = 0, ahead = STAGES - 1;
    for (int step = 0; step < a.stepsK; ++step) {
        copyWait<STAGES - 2>();
        __syncthreads();
        bool const more = step + STAGES - 1 < a.stepsK;
        u32 const next = base + ahead * STAGE_BYTES;
        if (more) {
            loadFilters(step + STAGES - 1, next + X_BYTES);
            if constexpr (VECTOR == 1)
                loadX();
            else
                copyX(next);
        }
        copyCommit();
        u32 const xs = base + stage * STAGE_BYTES, fs = xs + X_BYTES;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            u32 fx[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                loadMatrix4(fx[i], xs + unitAt(warpM + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < WARP_N / 16; ++j) {
                u32 b[4];
                loadMatrix4(b, fs + unitAt(warpN + j * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2));
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                    mma(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
                }
            }
        }
        if constexpr (VECTOR == 1)
            if (more)
                storeX(next);
        if (++stage == STAGES)
            stage = 0;
        if (++ahead == STAGES)
            ahead = 0;
    }
    copyWait<0>();
    Ahead residual;
    fetchResidual(y, residual, m0 + warpM, n0 + warpN, group, lane);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; ++i)
        writeRows(y, d[i], m0 + warpM + i * 16, n0 + warpN, group, base + warp * (32 * CHUNK), biases + warpN * 4,
                  residual, i == 0 ? m0 + warpM + 16 : -1, lane);
}

} // namespace tw::cuda::conv_f16
