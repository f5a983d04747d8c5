// SPDX-License-Identifier: Apache-2.0
// Sums of convolutions to pixels of FP16. After window_sums_mma.cuh.
#pragma once

#include "kernels/cuda/common/epilogue_rows_f16.cuh"
#include "kernels/cuda/mma/window_warps.cuh"

namespace tw::cuda::product {

struct End
{
    u32 base, biases = base + STAGES * Windows::STAGE_BYTES;
    Output y;
    BiasPart<TILE_N, THREADS> bias;
    TW_INLINE explicit End(u32 base) : base(base) {}
    TW_INLINE void begin(Args const& a, Windows const& source)
    {
        y = a;
        if constexpr (BIAS) {
            y.bias += source.phase.group * a.n;
            bias.take(y, source.n0, threadIdx.x);
        }
    }
    TW_INLINE void put() const
    {
        if constexpr (BIAS)
            bias.put(biases, threadIdx.x);
    }
    TW_INLINE void write(Args const&, Windows const& source, Sums const& sums, Sums::Values& values) const
    {
        int const group = source.phase.group, row = source.m0 + sums.row, column = source.n0 + sums.column;
        Ahead residual;
        fetchResidual(y, residual, row, column, group, sums.lane);
        __syncthreads(); // all stages are read
#pragma unroll
        for (int i = 0; i < 2; ++i)
            writeRows(y, values[i], row + i * 16, column, group, base + sums.warp * (32 * CHUNK),
                      biases + sums.column * 4, residual, i == 0 ? row + 16 : -1, sums.lane);
    }
};

} // namespace tw::cuda::product
