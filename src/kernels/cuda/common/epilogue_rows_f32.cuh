// SPDX-License-Identifier: Apache-2.0
// Sums to FP32, in rows of y.
#pragma once

#include "kernels/cuda/common/epilogue.cuh"

namespace tw::cuda {

// A pair of y's columns is a lane's own: four lanes write 32 bytes of a row.
struct Ahead
{};
TW_INLINE void fetchResidual(Output const&, Ahead&, int, int, int, int) {}
TW_INLINE void loadPair(float const* from, bool first, bool second, float (&x)[2])
{
    if constexpr (ALIGNED) {
        float2 const pair = first ? *reinterpret_cast<float2 const*>(from) : float2{0, 0};
        x[0] = pair.x;
        x[1] = pair.y;
    } else {
        x[0] = first ? from[0] : 0;
        x[1] = second ? from[1] : 0;
    }
}

// Writes 16 rows and 2 N columns of a warp's sums: v[4 j ..] holds rows g and g + 8 (g = lane / 4) of columns
// 8 j + 2 (lane % 4) and the next. `biases`: address of those columns' bias.
template <int N>
TW_INLINE void writeRows(Output const& a, float (&v)[N], int row0, int column0, int batch, u32, u32 biases, Ahead&, int,
                         int lane)
{
    constexpr int BLOCKS_N = N / 4, AHEAD = divisorUpTo(8, BLOCKS_N); // residuals on their way at once
    int const row = row0 + lane / 4, first = lane % 4 * 2;
    i64 const base = i64(batch) * a.batchY + i64(row) * a.ldy, from = i64(batch) * a.batchY + i64(row) * a.ldResidual;
#pragma unroll
    for (int j0 = 0; j0 < BLOCKS_N; j0 += AHEAD) {
        float add[AHEAD][2][2];
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    int const column = column0 + (j0 + j) * 8 + first;
                    bool const known = row + h * 8 < a.m;
                    loadPair(a.residual + from + h * 8 * a.ldResidual + column, known && column < a.n,
                             known && column + 1 < a.n, add[j][h]);
                }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j) {
            int const at = (j0 + j) * 8 + first, column = column0 + at;
            float b0 = 0, b1 = 0;
            if constexpr (BIAS) {
                b0 = __uint_as_float(loadShared(biases + at * 4));
                b1 = __uint_as_float(loadShared(biases + at * 4 + 4));
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float x0 = v[(j0 + j) * 4 + h * 2] + b0, x1 = v[(j0 + j) * 4 + h * 2 + 1] + b1;
                float r0 = 0, r1 = 0;
                if constexpr (RESIDUAL) {
                    r0 = add[j][h][0];
                    r1 = add[j][h][1];
                }
                x0 = epilogue(x0, r0);
                x1 = epilogue(x1, r1);
                float* to = a.y + base + h * 8 * a.ldy + column;
                if (row + h * 8 < a.m && column < a.n) {
                    if constexpr (ALIGNED)
                        *reinterpret_cast<float2*>(to) = float2{x0, x1};
                    else {
                        to[0] = x0;
                        if (column + 1 < a.n)
                            to[1] = x1;
                    }
                }
            }
        }
    }
}

} // namespace tw::cuda
