// SPDX-License-Identifier: Apache-2.0
// Convolutions of few channels, 8 pixels wide at most and 2 apart: patches of x in shared memory. After an epilogue.
//   int ROWS, COLUMNS (of 16 outputs), TILE_N, CHANNELS, FILTER_H, STRIDE_H, PAD_W, SHIFT, PATCH_UNITS
#pragma once

#include "kernels/cuda/common/epilogue.cuh"
#include "kernels/cuda/common/tf32.cuh"
#include "kernels/cuda/conv/stem_params.h"

namespace tw::cuda::stem_f16 {

// Units of 16 bytes. A step of k takes 32 bytes of a filter: two of its rows in FP16, one in FP32.
constexpr bool SINGLE = sizeof(Element) == 4;
constexpr int UNIT = SINGLE ? 4 : 8;
constexpr int THREADS = 256, FILTER_ROWS = CHANNELS * FILTER_H, STEPS = SINGLE ? FILTER_ROWS : (FILTER_ROWS + 1) / 2;
constexpr int PATCH_ROWS = (ROWS - 1) * STRIDE_H + FILTER_H, PITCH = PATCH_UNITS * 16, FILTER_UNITS = STEPS * 2;
constexpr int FILTER_PITCH = FILTER_UNITS * 16 + 16; // an odd number of 16 bytes: no bank conflicts
constexpr int PAIRS = (COLUMNS + 1) / 2;             // of 16 columns, for each row
using Args = ArgsOf<Element>;
TW_INLINE void multiply(float (&d)[4], u32 const (&a)[4], u32 b0, u32 b1)
{
    if constexpr (SINGLE)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        mma(d, a, b0, b1);
}

TW_KERNEL __launch_bounds__(THREADS, __CUDA_ARCH__ >= 900 ? 2 : 1) stem(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const filters = sharedAddress(raw), staging = filters + TILE_N * FILTER_PITCH;
    u32 const biases = staging + 8 * 32 * CHUNK, patch = biases + TILE_N * 4;
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32, g = lane / 4, t = lane % 4;
    int const blocksH = (a.outH + ROWS - 1) / ROWS, image = blockIdx.y / blocksH;
    int const q0 = blockIdx.x * (COLUMNS * 16), p0 = (blockIdx.y - image * blocksH) * ROWS, n0 = blockIdx.z * TILE_N;
    BiasPart<TILE_N, THREADS> bias;
    bias.take(a, n0, tid);
    bias.put(biases, tid);
    for (int at = tid; at < TILE_N * FILTER_UNITS; at += THREADS) {
        int const r = at / FILTER_UNITS, u = at % FILTER_UNITS;
        copyAsync16(filters + r * FILTER_PITCH + u * 16, a.filters + i64(n0 + r) * (FILTER_UNITS * UNIT) + u * UNIT,
                    n0 + r < a.n);
    }
    waitForPrevious();
    releaseDependents();
    // Pixels from column q0 * 2 - PAD_W - SHIFT, rounded down to 8.
    int const h0 = p0 * STRIDE_H - a.padH, w0 = q0 * 2 - (PAD_W + SHIFT + 7) / 8 * 8;
    Element const* const x = a.x + i64(image) * CHANNELS * a.h * a.w;
    for (int at = tid; at < CHANNELS * PATCH_ROWS * PATCH_UNITS; at += THREADS) {
        int const row = at / PATCH_UNITS, u = at % PATCH_UNITS, c = row / PATCH_ROWS, r = row % PATCH_ROWS;
        int const h = h0 + r, w = w0 + u * UNIT;
        copyAsync16(patch + row * PITCH + u * 16, x + (i64(c) * a.h + h) * a.w + w,
                    u32(h) < u32(a.h) && u32(w) < u32(a.w));
    }
    copyCommit();
    copyWait<0>();
    __syncthreads();

    constexpr int FIRST = (PAD_W + SHIFT + 7) / 8 * 8 - (PAD_W + SHIFT); // of the patch's first 8 columns
    u32 const filterAt = filters + (lane / 16 * 8 + lane % 8) * FILTER_PITCH + lane / 8 % 2 * 16;
    for (int item = warp; item < ROWS * PAIRS; item += 8) {
        int const row = item / PAIRS, column = (item - row * PAIRS) * 32, p = p0 + row;
        if (p >= a.outH || q0 + column >= a.m)
            continue;
        int const to = q0 + column, batch = image * a.outH + p;
        Ahead ahead;
        fetchResidual(a, ahead, to, n0, batch, lane);
        float d[2][TILE_N / 8 * 4] = {};
        // FP16 in words of two pixels: output column j begins at word j.
        u32 const pixels =
            patch + row * STRIDE_H * PITCH + (SINGLE ? FIRST + (column + g) * 2 + t : FIRST / 2 + column + g + t) * 4;
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            constexpr int LAST = FILTER_ROWS - 1;
            u32 fx[2][4];
            if constexpr (SINGLE) {
                u32 const r0 = pixels + (k / FILTER_H * PATCH_ROWS + k % FILTER_H) * PITCH;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    bool const there = COLUMNS % 2 == 0 || column + i * 16 < COLUMNS * 16;
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        fx[i][e] =
                            there ? toTf32(__uint_as_float(loadShared(r0 + i * 128 + e % 2 * 64 + e / 2 * 16))) : 0;
                }
            } else {
                u32 const r0 = pixels + (k * 2 / FILTER_H * PATCH_ROWS + k * 2 % FILTER_H) * PITCH;
                u32 const r1 = pixels + ((k * 2 + 1) / FILTER_H * PATCH_ROWS + (k * 2 + 1) % FILTER_H) * PITCH;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    bool const there = COLUMNS % 2 == 0 || column + i * 16 < COLUMNS * 16;
                    fx[i][0] = there ? loadShared(r0 + i * 64) : 0;
                    fx[i][1] = there ? loadShared(r0 + i * 64 + 32) : 0;
                    fx[i][2] = there && k * 2 < LAST ? loadShared(r1 + i * 64) : 0;
                    fx[i][3] = there && k * 2 < LAST ? loadShared(r1 + i * 64 + 32) : 0;
                }
            }
#pragma unroll
            for (int j = 0; j < TILE_N / 16; ++j) {
                u32 b[4];
                loadMatrix4(b, filterAt + j * 16 * FILTER_PITCH + k * 32);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    multiply(*reinterpret_cast<float(*)[4]>(&d[i][j * 8]), fx[i], b[0], b[1]);
                    multiply(*reinterpret_cast<float(*)[4]>(&d[i][j * 8 + 4]), fx[i], b[2], b[3]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (COLUMNS % 2 == 0 || column + i * 16 < COLUMNS * 16)
                writeRows(a, d[i], to + i * 16, n0, batch, staging + warp * (32 * CHUNK), biases, ahead,
                          i == 0 ? to + 16 : -1, lane);
    }
}

} // namespace tw::cuda::stem_f16
