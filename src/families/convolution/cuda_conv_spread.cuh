// SPDX-License-Identifier: Apache-2.0
// Convolutions to few filters by wide windows: what a row of the window's elements makes of a pixel are columns of one product,
// FILTERS for each element, so that a pixel is multiplied once for all elements of that row; those of neighbouring pixels are
// added up in shared memory. A warp has a row of y, IN_W pixels of x and its TILE_W outputs. After an epilogue.
//   int WARPS, BLOCKS_W (of 16 pixels), FILTERS, KH, KW, UNITS, PASSES, TAIL (channels of a pixel's last unit)
//   bool RESIDUAL
#pragma once

#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::patch {

constexpr int THREADS = WARPS * 32, IN_D = 1, IN_H = WARPS + KH - 1, IN_W = BLOCKS_W * 16, TILE_W = IN_W - KW + 1;

} // namespace tw::ops::patch

#include "families/convolution/cuda_conv_tile.cuh"

namespace tw::ops::patch {

constexpr int ITEMS = KH * UNITS, STEPS = (ITEMS + 1) / 2, COLUMNS = (KW * FILTERS + 7) / 8, PITCH = COLUMNS * 8 + 1;

// Of one step, as mma.sync takes its second factor.
TW_INLINE void fetchFilters(uint2 (&b)[COLUMNS], uint2 const* filters, int step, int lane)
{
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
        b[j] = __ldg(filters + (i64(step) * COLUMNS + j) * 32 + lane);
}

TW_KERNEL __launch_bounds__(THREADS) convolveSpread(const __grid_constant__ PatchParams p)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const tile = sharedAddress(raw);
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // Of this warp: of each pixel what its elements of the window's row make of it.
    float* const parts = reinterpret_cast<float*>(raw + IN_H * IN_W * PIXEL) + warp * (IN_W * PITCH);
    u32 const rowTile = blockIdx.x / p.tilesW, image = rowTile / p.tilesH;
    int const w0 = int(blockIdx.x - rowTile * p.tilesW) * TILE_W, h0 = int(rowTile - image * p.tilesH) * WARPS;
    float sums[BLOCKS_W][COLUMNS][4] = {};
    u32 at[BLOCKS_W]; // what this lane reads for the first item
#pragma unroll
    for (int i = 0; i < BLOCKS_W; ++i)
        at[i] = tile + (warp * IN_W + i * 16 + lane % 16) * PIXEL;
    waitForPrevious();
    releaseDependents();
    for (int pass = 0; pass < PASSES; ++pass) {
        fetchTile(p, tile, pass, int(image), 0, h0, w0);
        uint2 const* const filters = static_cast<uint2 const*>(p.filters) + i64(pass) * (STEPS * COLUMNS * 32);
        uint2 b[COLUMNS];
        fetchFilters(b, filters, 0, lane);
        for (int step = 0; step < STEPS; ++step) {
            int const item = min(step * 2 + lane / 16, ITEMS - 1), row = item / UNITS;
            u32 const offset = row * IN_W * PIXEL + (item - row * UNITS) * 16;
            uint2 next[COLUMNS];
            fetchFilters(next, filters, min(step + 1, STEPS - 1), lane);
#pragma unroll
            for (int i = 0; i < BLOCKS_W; ++i) {
                u32 a[4];
                loadMatrix4(a, at[i] + offset);
                if (ITEMS % 2 != 0 && step == STEPS - 1)
                    a[2] = a[3] = 0; // no item: what lies there may be infinite
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    mma(sums[i][j], a, b[j].x, b[j].y);
            }
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
                b[j] = next[j];
        }
    }
#pragma unroll
    for (int i = 0; i < BLOCKS_W; ++i)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                parts[(i * 16 + lane / 4 + e / 2 * 8) * PITCH + j * 8 + lane % 4 * 2 + e % 2] = sums[i][j][e];
    __syncwarp();
    int const h = h0 + warp;
    if (h >= p.outH)
        return;
    for (int i = lane; i < TILE_W && w0 + i < p.m; i += 32) {
        i64 const pixel = (i64(image) * p.outH + h) * p.m + w0 + i;
        float v[8] = {};
#pragma unroll
        for (int f = 0; f < FILTERS; ++f) {
            float sum = __ldg(p.bias + f);
#pragma unroll
            for (int k = 0; k < KW; ++k)
                sum += parts[(i + k) * PITCH + k * FILTERS + f];
            float residual = 0;
            if constexpr (RESIDUAL)
                residual = halfToFloat(static_cast<Narrow const*>(p.residual)[pixel * p.ldResidual + f]);
            v[f] = epilogue(sum, residual);
        }
        *reinterpret_cast<Unit*>(static_cast<Narrow*>(p.y) + pixel * p.ldy) =
            Unit{packHalves(v[0], v[1]), packHalves(v[2], v[3]), packHalves(v[4], v[5]), packHalves(v[6], v[7])};
    }
}

} // namespace tw::ops::patch
