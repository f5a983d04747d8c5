// SPDX-License-Identifier: Apache-2.0
// Sums to FP16, in columns of y.
#pragma once

#include "kernels/cuda/common/epilogue.cuh"

namespace tw::cuda {

// Swapped: rows are y's columns. v[4 j ..] holds n = row0 + g, + 8 of m = column0 + 8 j + 2 (lane % 4) and the next;
// bias is that of those n. y and the residual move as 8 x 8 blocks the other way round: lane holds m = column0 + 8 j + g
// of n = row0 + 2 (lane % 4) and the next.
TW_INLINE u32 transposed(u32 v)
{
    u32 out;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(v));
    return out;
}
template <int N>
TW_INLINE void writeColumns(Output const& a, float (&v)[N], float const (&bias)[2], int row0, int column0, int batch,
                            int lane)
{
    constexpr int BLOCKS_Q = N / 4, AHEAD = divisorUpTo(13, BLOCKS_Q); // residuals on their way at once
    int const g = lane / 4, t = lane % 4;
    i64 const base = i64(batch) * a.batchY + row0 + t * 2;
#pragma unroll
    for (int first = 0; first < BLOCKS_Q; first += AHEAD) {
        u32 add[AHEAD][2];
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    int const row = column0 + (first + j) * 8 + g, n = row0 + t * 2 + h * 8;
                    Narrow const* from = a.residual + base + i64(row) * a.ldResidual + h * 8;
                    u32 x = 0;
                    if (row < a.m && n < a.n) {
                        if constexpr (ALIGNED)
                            x = *reinterpret_cast<u32 const*>(from);
                        else
                            x = from[0].bits | (n + 1 < a.n ? u32(from[1].bits) << 16 : 0u);
                    }
                    add[j][h] = x;
                }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int const at = (first + j) * 4 + h * 2;
                float x0 = v[at] + bias[h], x1 = v[at + 1] + bias[h];
                float r0 = 0, r1 = 0;
                if constexpr (RESIDUAL) {
                    u32 const r = transposed(add[j][h]);
                    r0 = lowHalf(r);
                    r1 = highHalf(r);
                }
                x0 = epilogue(x0, r0);
                x1 = epilogue(x1, r1);
                u32 const out = transposed(packHalves(x0, x1));
                int const row = column0 + (first + j) * 8 + g, n = row0 + t * 2 + h * 8;
                if (row < a.m && n < a.n) {
                    Narrow* to = a.y + base + i64(row) * a.ldy + h * 8;
                    if constexpr (ALIGNED)
                        *reinterpret_cast<u32*>(to) = out;
                    else {
                        to[0].bits = u16(out);
                        if (n + 1 < a.n)
                            to[1].bits = u16(out >> 16);
                    }
                }
            }
    }
}

// Results that are ended, of 8 of y's columns a warp: v[2 j ..] holds n = column + g of m = column0 + 8 j + 2 (lane % 4) and
// the next.
template <int N>
TW_INLINE void writeEightColumns(Output const& a, float const (&v)[N], int column, int column0, int batch, int lane)
{
    int const n = column + lane % 4 * 2;
    Narrow* const y = a.y + i64(batch) * a.batchY + n;
#pragma unroll
    for (int j = 0; j < N / 2; ++j) {
        u32 const out = transposed(packHalves(v[j * 2], v[j * 2 + 1]));
        int const row = column0 + j * 8 + lane / 4;
        if (row < a.m && n < a.n) // n is even, and so are gated columns
            *reinterpret_cast<u32*>(y + i64(row) * a.ldy) = out;
    }
}

} // namespace tw::cuda
