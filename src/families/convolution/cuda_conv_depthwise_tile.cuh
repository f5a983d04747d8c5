// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions by tiles. After cuda_conv_depthwise_tile_f16.cuh or _f32.cuh, which have Worker.
#pragma once

#include "families/convolution/cuda_conv_depthwise_tiles.cuh"

namespace tw::ops::conv_f16 {

TW_KERNEL __launch_bounds__(THREADS, BLOCKS) depthwise(const __grid_constant__ TileParams p)
{
    extern __shared__ __align__(128) unsigned char shared[];
    u32 const first = sharedAddress(shared), staged = first + TILE * 2;
    u32 const place = divide(blockIdx.x, p.slices);
    int const vector0 = int(blockIdx.x - place * u32(p.slices.d)) * VECTORS;
    waitForPrevious();
    releaseDependents();
    Tile tile = tileOf(p, place);
    takeTile(p, tile, first, vector0);
    copyCommit();
    Worker worker;
    worker.begin(p, vector0);
    int turn = 0;
    for (u32 i = place; i < p.tiles; i += p.step) {
        Tile const next = tileOf(p, i + p.step);
        if (i + p.step < p.tiles)
            takeTile(p, next, first + (turn ^ 1) * TILE, vector0);
        copyCommit();
        copyWait<1>();
        __syncthreads();
        bool const again = __syncthreads_or(worker.compute(p, tile, first + turn * TILE, staged, vector0));
        putTile(p, tile, staged, vector0);
        if (again) {
            __syncthreads();
            computeAgain(p, tile, first + turn * TILE, vector0);
            __syncthreads();
        }
        tile = next;
        turn ^= 1;
    }
}

} // namespace tw::ops::conv_f16
