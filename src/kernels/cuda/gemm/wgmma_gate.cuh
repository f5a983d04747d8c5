// SPDX-License-Identifier: Apache-2.0
// What leaves a tile of a product by wgmma: rows as they are, or one half of the columns gated by the other.
//   bool GATED, GATE_BIAS; float activateGate(float)
// Gated, Q's columns (or P's rows, swapped) come in groups of 16, 8 gates and then the 8 columns of y that they let through: a lane's sums of
// either stand side by side. Their biases come in the same order.
#pragma once

#include "kernels/cuda/gemm/wgmma_tiles.cuh"

namespace tw::cuda::gemm_f16 {

// y of 16 rows and 2 N columns of sums, from column0 on.
template <int N>
TW_INLINE void gate(Args const& a, float const (&v)[N], float (&y)[N / 2], int column0, int lane)
{
    static_assert(N % 8 == 0, "whole groups");
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
        float bias[2][2] = {};
        if constexpr (GATE_BIAS) {
            int const column = column0 + j * 16 + lane % 4 * 2;
            if (column < a.n * 2) { // columns behind are not stored
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    float2 const pair = *reinterpret_cast<float2 const*>(a.bias + column + h * 8);
                    bias[h][0] = pair.x;
                    bias[h][1] = pair.y;
                }
            }
        }
#pragma unroll
        for (int e = 0; e < 4; ++e)
            y[j * 4 + e] = activateGate(v[j * 8 + e] + bias[0][e % 2]) * (v[j * 8 + 4 + e] + bias[1][e % 2]);
    }
}

// Biases of rows n and n + 8 of swapped tiles, a gate's and that of what it lets through. E: RowEnds.
template <class E>
TW_INLINE void takeGateBias(Args const& a, E& ends, int n)
{
    if constexpr (GATE_BIAS)
#pragma unroll
        for (int h = 0; h < 2; ++h)
            ends.v[h] = n + h * 8 < a.n * 2 ? a.bias[n + h * 8] : 0;
}
// writeColumns() of a swapped tile's sums, whose rows are Q's columns elsewhere: a lane's rows are a gate and what it lets
// through. A, V, E: Args, sums, and what RowEnds has, which differ from one kind of sums to another.
template <class A, class V, class E>
TW_INLINE void leaveByColumns(A const& a, V& v, E const& ends, int row0, int column0, int batch, int lane)
{
    if constexpr (GATED) {
        constexpr int N = sizeof(v) / sizeof(v[0]);
        float y[N / 2];
#pragma unroll
        for (int j = 0; j < N / 4; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                y[j * 2 + e] = activateGate(v[j * 4 + e] + ends[0]) * (v[j * 4 + 2 + e] + ends[1]);
        writeEightColumns(a, y, row0 / 2, column0, batch, lane);
    } else {
        writeColumns(a, v, ends, row0, column0, batch, lane);
    }
}

// writeRows() and copyRows() of a tile's sums; row0, column0: of the first sum.
template <int N>
TW_INLINE void leaveByRows(Args const& a, float (&v)[N], int row0, int column0, int batch, u32 stage, u32 biases,
                           Ahead& ahead, int nextRow, int lane)
{
    if constexpr (GATED) {
        float y[N / 2];
        gate(a, v, y, column0, lane);
        writeRows(a, y, row0, column0 / 2, batch, stage, biases, ahead, nextRow, lane);
    } else {
        writeRows(a, v, row0, column0, batch, stage, biases, ahead, nextRow, lane);
    }
}
template <int N>
TW_INLINE void leaveByCopies(Args const& a, TensorMap const* map, float (&v)[N], int row0, int column0, int batch,
                             u32 stage, u32 biases, int lane)
{
    if constexpr (GATED) {
        float y[N / 2];
        gate(a, v, y, column0, lane);
        copyRows(map, y, row0, column0 / 2, batch, stage, biases, lane);
    } else {
        copyRows(map, v, row0, column0, batch, stage, biases, lane);
    }
}

} // namespace tw::cuda::gemm_f16
