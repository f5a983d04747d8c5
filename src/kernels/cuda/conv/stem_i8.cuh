// SPDX-License-Identifier: Apache-2.0
// First convolutions of i8: a block keeps the pixels that its outputs see in shared memory, a word of four channels each,
// which is what a register of the first factor holds of k. After integerEndSource().
//   int ROWS, COLUMNS (of 16 outputs), TILE_N, CHANNELS, FILTER_H, FILTER_W, FILTER_BYTES, STRIDE_H, STRIDE_W
//   bool PACKS, ALIGNED
#pragma once

#include "kernels/cuda/common/mma_i8.cuh"
#include "kernels/cuda/conv/stem_params.h"

namespace tw::cuda::stem_i8 {

constexpr int THREADS = 256, STEPS = FILTER_BYTES / 32;
constexpr int FILTER_UNITS = FILTER_BYTES / 16, FILTER_PITCH = FILTER_BYTES + 16; // an odd number of 16 bytes
constexpr bool PAIRS = FILTER_W <= 4;                                             // of rows in a step of k
constexpr int PATCH_ROWS = (ROWS - 1) * STRIDE_H + (PAIRS ? STEPS * 2 : FILTER_H);
// Words: 3 more in front, so that rows begin at whole words of x, and taps of weight 0 behind.
constexpr int PATCH_UNITS = ((COLUMNS * 16 - 1) * STRIDE_W + (PAIRS ? 4 : 8) + 3 + 3) / 4, PITCH = PATCH_UNITS * 16;
constexpr int BLOCKS_N = TILE_N / 16;

// Four bytes of a row of `w` from column `at` on; zeros outside.
TW_INLINE u32 loadRow(i8 const* row, int at, int w)
{
    if constexpr (PACKS) // columns and rows are whole words
        return u32(at) < u32(w) ? *reinterpret_cast<u32 const*>(row + at) : 0;
    u32 v = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (u32(at + i) < u32(w))
            v |= u32(u8(row[at + i])) << i * 8;
    return v;
}

TW_KERNEL __launch_bounds__(THREADS, 2) stem(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const filters = sharedAddress(raw), scales = filters + TILE_N * FILTER_PITCH;
    u32 const biases = scales + TILE_N * 4, patch = biases + TILE_N * 4;
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    int const blocksH = (a.outH + ROWS - 1) / ROWS, image = blockIdx.y / blocksH;
    int const q0 = blockIdx.x * (COLUMNS * 16), p0 = (blockIdx.y - image * blocksH) * ROWS, n0 = blockIdx.z * TILE_N;
    // Of 16 filters the even ones, then the odd ones.
    for (int at = tid; at < TILE_N * FILTER_UNITS; at += THREADS) {
        int const r = at / FILTER_UNITS, u = at % FILTER_UNITS, to = r / 16 * 16 + r % 2 * 8 + r % 16 / 2;
        copyAsync16(filters + to * FILTER_PITCH + u * 16, a.filters + i64(n0 + r) * FILTER_BYTES + u * 16,
                    n0 + r < a.k);
    }
    copyCommit();
    waitForPrevious();
    releaseDependents();
    if (tid < TILE_N) {
        bool const isThere = n0 + tid < a.k;
        storeShared(scales + tid * 4, isThere ? __float_as_uint(endScale(a.end, n0 + tid)) : 0);
        storeShared(biases + tid * 4, isThere ? __float_as_uint(endBias(a.end, n0 + tid)) : 0);
    }
    int const h0 = p0 * STRIDE_H - a.padH, w0 = q0 * STRIDE_W - a.padW, begin = w0 & ~3; // also of negative ones
    i8 const* const x = a.x + i64(image) * CHANNELS * a.h * a.w;
    for (int at = tid; at < PATCH_ROWS * PATCH_UNITS; at += THREADS) {
        int const r = at / PATCH_UNITS, u = at % PATCH_UNITS, h = h0 + r;
        u32 c[4] = {};
        if (u32(h) < u32(a.h))
#pragma unroll
            for (int i = 0; i < CHANNELS; ++i)
                c[i] = loadRow(x + (i64(i) * a.h + h) * a.w, begin + u * 4, a.w);
        u32 const low = __byte_perm(c[0], c[1], 0x5140), high = __byte_perm(c[0], c[1], 0x7362);
        u32 const low2 = __byte_perm(c[2], c[3], 0x5140), high2 = __byte_perm(c[2], c[3], 0x7362);
        Unit pixels;
        pixels.v[0] = __byte_perm(low, low2, 0x5410);
        pixels.v[1] = __byte_perm(low, low2, 0x7632);
        pixels.v[2] = __byte_perm(high, high2, 0x5410);
        pixels.v[3] = __byte_perm(high, high2, 0x7632);
        storeShared(patch + r * PITCH + u * 16, pixels);
    }
    copyWait<0>();
    __syncthreads();

    EndNumbers const numbers = endNumbers(a.end);
    u32 const filterAt = filters + lane % 16 * FILTER_PITCH + lane / 16 * 16;
    // Two items at a time share what is read of the filters, which is most of what comes from shared memory.
    constexpr int ITEMS = ROWS * COLUMNS, AT_ONCE = 2;
    for (int item = warp * AT_ONCE; item < ITEMS; item += 8 * AT_ONCE) {
        Sums16 sum[AT_ONCE][BLOCKS_N];
        u32 pixels[AT_ONCE]; // this lane's even output's first tap; the odd one is a step further
        int q[AT_ONCE], p[AT_ONCE];
        bool isThere[AT_ONCE];
#pragma unroll
        for (int e = 0; e < AT_ONCE; ++e) {
            int const own = min(item + e, ITEMS - 1), row = own / COLUMNS, column = (own - row * COLUMNS) * 16;
            p[e] = p0 + row;
            q[e] = q0 + column;
            isThere[e] = item + e < ITEMS && p[e] < a.outH && q[e] < a.outW;
            pixels[e] =
                patch + row * STRIDE_H * PITCH + ((column + lane / 4 * 2) * STRIDE_W + lane % 4 + (w0 - begin)) * 4;
#pragma unroll
            for (int j = 0; j < BLOCKS_N; ++j)
                sum[e][j].clear();
        }
        if (!isThere[0] && !isThere[1])
            continue;
#pragma unroll
        for (int k = 0; k < STEPS; ++k) {
            u32 f[AT_ONCE][4];
#pragma unroll
            for (int e = 0; e < AT_ONCE; ++e) {
                u32 const at[2] = {pixels[e] + (PAIRS ? k * 2 : k) * PITCH,
                                   PAIRS ? pixels[e] + (k * 2 + 1) * PITCH : pixels[e] + k * PITCH + 16};
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    f[e][i] = loadShared(at[i / 2] + i % 2 * STRIDE_W * 4);
            }
#pragma unroll
            for (int j = 0; j < BLOCKS_N; ++j) {
                u32 b[4];
                loadFactors<true>(b, filterAt + j * 16 * FILTER_PITCH + k * 32);
#pragma unroll
                for (int e = 0; e < AT_ONCE; ++e)
                    sum[e][j].add(f[e], b);
            }
        }
#pragma unroll
        for (int j = 0; j < BLOCKS_N; j += 2) {
            int const n = n0 + j * 16;
            EndColumns<2> ends;
            ends.takeShared(scales + j * 64, biases + j * 64, lane);
#pragma unroll
            for (int at = 0; at < AT_ONCE * 2; ++at) {
                int const e = at / 2, h = at % 2, column = q[e] + lane / 4 * 2 + h;
                if (!isThere[e])
                    continue;
                i64 const pixel = (i64(image) * a.outH + p[e]) * a.outW + column;
                i32 v[2][4];
                sum[e][j].row(v[0], h);
                sum[e][j + 1].row(v[1], h);
                ends.put(v, numbers, a.end.table, static_cast<EndElement*>(a.y) + pixel * a.pixelY + n,
                         static_cast<EndResidual const*>(a.end.residual) + pixel * a.pixelResidual + n,
                         column < a.outW ? a.filters8 - n : 0, lane);
            }
        }
    }
}

} // namespace tw::cuda::stem_i8
