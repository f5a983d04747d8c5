// SPDX-License-Identifier: Apache-2.0
// Sums to rows of y. After sums_f16.cuh.
//   int BIAS_AT, STAGING_AT; bool FINISHES   else finish.cuh adds up what blocks have left in memory
#pragma once

#include "kernels/cuda/common/epilogue_rows_f16.cuh"
#include "kernels/cuda/mma/split.cuh"

namespace tw::cuda::product {

// What a thread has of a tile's sums lies in steps of 16 bytes times THREADS, in memory too.
TW_INLINE float* sumsOf(Args const& a, int tile, int rank)
{
    return a.sums + (i64(tile) * SPLIT + rank) * (TILE_M * TILE_N) + threadIdx.x * 4;
}
struct End
{
    u32 base, biases = base + BIAS_AT;
    BiasPart<TILE_N, THREADS> bias;
    TW_INLINE explicit End(u32 base) : base(base) {}
    TW_INLINE void begin(Args const& a, Matrices const& source)
    {
        if constexpr (FINISHES)
            bias.take(a, source.tile.n0, threadIdx.x);
    }
    TW_INLINE void put() const
    {
        if constexpr (FINISHES)
            bias.put(biases, threadIdx.x);
    }
    TW_INLINE void write(Args const& a, Matrices const& source, Sums const& sums, Sums::Values& values) const
    {
        auto const [batch, m0, n0] = source.tile;
        if constexpr (!FINISHES) {
            float* const to = sumsOf(a, blockIdx.x / SPLIT, source.rank);
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int j = 0; j < PART; ++j) {
                    float const* const v = Sums::four(values, i, j);
                    *reinterpret_cast<float4*>(to + (i * PART + j) * (THREADS * 4)) = float4{v[0], v[1], v[2], v[3]};
                }
            return;
        }
        int const row = m0 + sums.row, column = sums.column + source.rank * (PART * 8), lane = sums.lane;
        Ahead residual;
        fetchResidual(a, residual, row, n0 + column, batch, lane);
        u32 const staging = base + STAGING_AT + sums.warp * (32 * CHUNK);
        if constexpr (CLUSTERS) {
            share(sums, values, base, source.rank);
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i) {
                float v[PART * 4] = {};
                addUp(v, base, i, sums.tid);
                writeRows(a, v, row + i * 16, n0 + column, batch, staging, biases + column * 4, residual,
                          i + 1 < BLOCKS_M ? row + i * 16 + 16 : -1, lane);
            }
        } else {
            __syncthreads(); // all stages are read
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
                writeRows(a, values[i], row + i * 16, n0 + column, batch, staging, biases + column * 4, residual,
                          i + 1 < BLOCKS_M ? row + i * 16 + 16 : -1, lane);
        }
    }
};

} // namespace tw::cuda::product
