// SPDX-License-Identifier: Apache-2.0
// What a warp has of a tile of y.
//   int TILE_M, TILE_N, WARPS_M, WARPS_N
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda::product {

constexpr int WM = TILE_M / WARPS_M, WN = TILE_N / WARPS_N, BLOCKS_M = WM / 16;
struct WarpTile
{
    int const tid = threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const row = warp / WARPS_N * WM, column = warp % WARPS_N * WN; // its first ones
};

} // namespace tw::cuda::product
