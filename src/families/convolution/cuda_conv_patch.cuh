// SPDX-License-Identifier: Apache-2.0
// Convolutions over two or three axes with few channels: a block keeps the pixels of x that its outputs see in shared memory, so
// that each is read from there once for all taps. Rows of a product are 16 neighbouring outputs of a row of y, k runs over
// items: taps, and UNITS of 8 channels of each. More channels than these take several passes. After an epilogue.
//   int TILE_D, TILE_H (outputs; a tile is 16 wide), TILE_N (filters), WARPS, KD, KH, KW, UNITS, PASSES, BLOCKS,
//   TAIL (channels of a pixel's last unit)
//   bool RESIDUAL
#pragma once

#include "families/convolution/cuda_conv_patch_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::patch {

using namespace tw::cuda;

constexpr int THREADS = WARPS * 32, TILE_W = 16, ROWS = TILE_D * TILE_H / WARPS; // ROWS: of a warp, of 16 outputs each
constexpr int IN_D = TILE_D + KD - 1, IN_H = TILE_H + KH - 1, IN_W = TILE_W + KW - 1;

} // namespace tw::ops::patch

#include "families/convolution/cuda_conv_tile.cuh"

namespace tw::ops::patch {

constexpr int ITEMS = KD * KH * KW * UNITS, STEPS = (ITEMS + 1) / 2;
constexpr int COLUMNS = TILE_N / 8, PAIRS = (COLUMNS + 1) / 2, WORDS = COLUMNS == 1 ? 2 : 4; // of a filter's operand

// Filters of one step for this lane: of 8 columns b[column].
TW_INLINE void fetchFilters(u32 (&b)[COLUMNS][2], u32 const* filters, int step, int lane)
{
#pragma unroll
    for (int p = 0; p < PAIRS; ++p) {
        u32 const* const from = filters + ((i64(step) * PAIRS + p) * 32 + lane) * WORDS;
        if constexpr (COLUMNS == 1) {
            uint2 const u = __ldg(reinterpret_cast<uint2 const*>(from));
            b[0][0] = u.x;
            b[0][1] = u.y;
        } else {
            uint4 const u = __ldg(reinterpret_cast<uint4 const*>(from));
            b[p * 2][0] = u.x;
            b[p * 2][1] = u.y;
            b[p * 2 + 1][0] = u.z;
            b[p * 2 + 1][1] = u.w;
        }
    }
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS) convolvePatch(const __grid_constant__ PatchParams p)
{
    extern __shared__ __align__(128) u8 raw[];
    __shared__ u32 offsets[STEPS * 2]; // of items, from the first tap's pixel
    u32 const patch = sharedAddress(raw);
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    u32 const rowTile = blockIdx.x / p.tilesW, planeTile = rowTile / p.tilesH, image = planeTile / p.tilesD;
    int const w0 = int(blockIdx.x - rowTile * p.tilesW) * TILE_W, h0 = int(rowTile - planeTile * p.tilesH) * TILE_H,
              d0 = int(planeTile - image * p.tilesD) * TILE_D, n0 = blockIdx.y * TILE_N;
    for (int i = tid; i < STEPS * 2; i += THREADS) {
        int const tap = i / UNITS, kd = tap / (KH * KW), kh = tap / KW % KH, kw = tap % KW;
        offsets[i] = i < ITEMS ? ((kd * IN_H + kh) * IN_W + kw) * PIXEL + i % UNITS * 16 : 0;
    }
    float sums[ROWS][COLUMNS][4] = {};
    u32 at[ROWS]; // what this lane reads for the first item
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        int const row = warp * ROWS + i;
        at[i] = patch + ((row / TILE_H * IN_H + row % TILE_H) * IN_W + lane % 16) * PIXEL;
    }
    waitForPrevious();
    releaseDependents();
    for (int pass = 0; pass < PASSES; ++pass) {
        fetchTile(p, patch, pass, int(image), d0, h0, w0);
        u32 const* const filters =
            static_cast<u32 const*>(p.filters) + i64(blockIdx.y * PASSES + pass) * (STEPS * PAIRS * 32 * WORDS);
        u32 b[COLUMNS][2];
        fetchFilters(b, filters, 0, lane);
#pragma unroll(STEPS % 3 == 0 ? 3 : 2)
        for (int step = 0; step < STEPS; ++step) {
            u32 const offset = offsets[step * 2 + lane / 16];
            u32 next[COLUMNS][2];
            fetchFilters(next, filters, min(step + 1, STEPS - 1), lane);
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                u32 a[4];
                loadMatrix4(a, at[i] + offset);
                if (ITEMS % 2 != 0 && step == STEPS - 1)
                    a[2] = a[3] = 0; // no item: what lies there may be infinite
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    mma(sums[i][j], a, b[j][0], b[j][1]);
            }
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                b[j][0] = next[j][0];
                b[j][1] = next[j][1];
            }
        }
    }
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
        int const column = n0 + j * 8 + lane % 4 * 2;
        if (column >= p.n)
            continue;
        float const bias0 = __ldg(p.bias + column), bias1 = __ldg(p.bias + column + 1);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            int const row = warp * ROWS + i, d = d0 + row / TILE_H, h = h0 + row % TILE_H;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                int const w = w0 + lane / 4 + half * 8;
                if (d >= p.outD || h >= p.outH || w >= p.m)
                    continue;
                i64 const pixel = ((i64(image) * p.outD + d) * p.outH + h) * p.m + w;
                u32 residual = 0;
                if constexpr (RESIDUAL)
                    residual = *reinterpret_cast<u32 const*>(static_cast<Narrow const*>(p.residual) +
                                                             pixel * p.ldResidual + column);
                float const a = epilogue(sums[i][j][half * 2] + bias0, lowHalf(residual)),
                            b = epilogue(sums[i][j][half * 2 + 1] + bias1, highHalf(residual));
                *reinterpret_cast<u32*>(static_cast<Narrow*>(p.y) + pixel * p.ldy + column) = packHalves(a, b);
            }
        }
    }
}

} // namespace tw::ops::patch
