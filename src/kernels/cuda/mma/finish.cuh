// SPDX-License-Identifier: Apache-2.0
// Adds up what the blocks that share k have left in memory.
//   int FINISH_BIAS_AT
#pragma once

#include "kernels/cuda/mma/end_rows.cuh"

namespace tw::cuda::product {

TW_KERNEL __launch_bounds__(THREADS) finish(const __grid_constant__ Args a)
{
    extern __shared__ __align__(1024) u8 raw[];
    u32 const base = sharedAddress(raw), biases = base + FINISH_BIAS_AT;
    auto const [batch, m0, n0] = tileAt(a, blockIdx.x);
    WarpTile const w;
    int const row = m0 + w.row;
    BiasPart<TILE_N, THREADS> bias;
    bias.take(a, n0, w.tid);
    bias.put(biases, w.tid);
    __syncthreads();
    waitForPrevious();
    releaseDependents();
    Ahead residual;
    fetchResidual(a, residual, row, n0 + w.column, batch, w.lane);
#pragma unroll
    for (int i = 0; i < BLOCKS_M; ++i) {
        float v[PART * 4] = {};
#pragma unroll
        for (int o = 0; o < SPLIT; ++o) {
            float const* const from = sumsOf(a, blockIdx.x, o) + i * PART * (THREADS * 4);
#pragma unroll
            for (int j = 0; j < PART; ++j) {
                float4 const x = *reinterpret_cast<float4 const*>(from + j * (THREADS * 4));
                v[j * 4] += x.x;
                v[j * 4 + 1] += x.y;
                v[j * 4 + 2] += x.z;
                v[j * 4 + 3] += x.w;
            }
        }
        writeRows(a, v, row + i * 16, n0 + w.column, batch, base + w.warp * (32 * CHUNK), biases + w.column * 4,
                  residual, i + 1 < BLOCKS_M ? row + i * 16 + 16 : -1, w.lane);
    }
}

} // namespace tw::cuda::product
