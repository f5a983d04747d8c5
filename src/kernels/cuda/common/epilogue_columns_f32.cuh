// SPDX-License-Identifier: Apache-2.0
// Sums to FP32, in columns of y.
#pragma once

#include "kernels/cuda/common/epilogue.cuh"

namespace tw::cuda {

// Swapped: rows are y's columns. v[4 j ..] holds n = row0 + g, + 8 of m = column0 + 8 j + 2 (lane % 4) and the next;
// bias is that of those n. Eight lanes write 32 bytes of a row.
template <int N>
TW_INLINE void writeColumns(Output const& a, float (&v)[N], float const (&bias)[2], int row0, int column0, int batch,
                            int lane)
{
    constexpr int BLOCKS_Q = N / 4, AHEAD = divisorUpTo(8, BLOCKS_Q); // residuals on their way at once
    int const n = row0 + lane / 4, m = column0 + lane % 4 * 2;
    i64 const base = i64(batch) * a.batchY + n;
#pragma unroll
    for (int first = 0; first < BLOCKS_Q; first += AHEAD) {
        float add[AHEAD][4];
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    int const row = m + (first + j) * 8 + e % 2, h = e / 2 * 8;
                    add[j][e] = row < a.m && n + h < a.n ? a.residual[base + i64(row) * a.ldResidual + h] : 0;
                }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float x = v[(first + j) * 4 + e] + bias[e / 2];
                if constexpr (RESIDUAL)
                    x = epilogue(x, add[j][e]);
                else
                    x = epilogue(x, 0);
                int const row = m + (first + j) * 8 + e % 2, h = e / 2 * 8;
                if (row < a.m && n + h < a.n)
                    a.y[base + i64(row) * a.ldy + h] = x;
            }
    }
}

} // namespace tw::cuda
