// SPDX-License-Identifier: Apache-2.0
// Sums to FP16, in rows of y.
#pragma once

#include "kernels/cuda/common/epilogue.cuh"

namespace tw::cuda {

constexpr int PER_LANE = (16 * UNITS + 31) / 32; // units of 16 rows of a chunk
// A residual on its way: of 16 rows and CHUNK columns, as lanes write y.
struct Ahead
{
    Unit x[RESIDUAL ? PER_LANE : 1];
};
TW_INLINE void fetchResidual(Output const& a, Ahead& ahead, int row0, int column0, int batch, int lane)
{
    if constexpr (RESIDUAL) {
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            int const at = lane + i * 32, r = at / UNITS, u = at % UNITS, row = row0 + r, column = column0 + u * 8;
            Unit x = {};
            Narrow const* from = a.residual + i64(batch) * a.batchY + i64(row) * a.ldResidual + column;
            if ((16 * UNITS >= 32 || r < 16) && row < a.m && column < a.n) {
                if constexpr (ALIGNED)
                    x = *reinterpret_cast<Unit const*>(from);
                else {
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        if (column + e < a.n)
                            x.v[e / 2] |= u32(from[e].bits) << (e % 2 * 16);
                }
            }
            ahead.x[i] = x;
        }
    }
}
// Writes 16 rows and 2 N columns of a warp's sums: v[4 j ..] holds rows g and g + 8 (g = lane / 4) of columns
// 8 j + 2 (lane % 4) and the next. `stage`: 16 * CHUNK halves of the warp's own; `biases`: address of those columns' bias.
// `ahead` holds the residual of the first chunk, then that of the first chunk of the rows from nextRow on, unless < 0.
// A: Output, or what has a rowAt() of its own.
template <class A, int N>
TW_INLINE void writeRows(A const& a, float (&v)[N], int row0, int column0, int batch, u32 stage, u32 biases,
                         Ahead& ahead, int nextRow, int lane)
{
    constexpr int CHUNKS = N * 2 / CHUNK;
    int const g = lane / 4, t = lane % 4;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        int const c0 = column0 + chunk * CHUNK;
        if constexpr (RESIDUAL) {
#pragma unroll
            for (int i = 0; i < PER_LANE; ++i) {
                int const at = lane + i * 32, r = at / UNITS, u = at % UNITS;
                if (16 * UNITS >= 32 || r < 16)
                    storeShared(stage + (r * UNITS + (u ^ (r & (UNITS - 1)))) * 16, ahead.x[i]);
            }
            __syncwarp();
            if (chunk + 1 < CHUNKS)
                fetchResidual(a, ahead, row0, c0 + CHUNK, batch, lane);
            else if (nextRow >= 0)
                fetchResidual(a, ahead, nextRow, column0, batch, lane);
        }
#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
            int const j = chunk * UNITS + u;
            float b0 = 0, b1 = 0;
            if constexpr (BIAS) {
                u32 const at = biases + (chunk * CHUNK + u * 8 + t * 2) * 4;
                b0 = __uint_as_float(loadShared(at));
                b1 = __uint_as_float(loadShared(at + 4));
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int const r = g + h * 8;
                u32 const at = stage + (r * UNITS + (u ^ (r & (UNITS - 1)))) * 16 + t * 4;
                float x0 = v[j * 4 + h * 2] + b0, x1 = v[j * 4 + h * 2 + 1] + b1;
                float r0 = 0, r1 = 0;
                if constexpr (RESIDUAL) {
                    u32 const add = loadShared(at);
                    r0 = lowHalf(add);
                    r1 = highHalf(add);
                }
                x0 = epilogue(x0, r0);
                x1 = epilogue(x1, r1);
                storeShared(at, packHalves(x0, x1));
            }
        }
        __syncwarp();
        if constexpr (ALIGNED) {
#pragma unroll
            for (int i = 0; i < PER_LANE; ++i) {
                int const at = lane + i * 32, r = at / UNITS, u = at % UNITS, column = c0 + u * 8;
                RowAt const row = rowAt(a, batch, row0 + r);
                if ((16 * UNITS >= 32 || r < 16) && row.has && column < a.n)
                    *reinterpret_cast<Unit*>(a.y + row.at + column) =
                        loadSharedUnit(stage + (r * UNITS + (u ^ (r & (UNITS - 1)))) * 16);
            }
        } else { // an element a lane, so that a row's neighbours leave together
#pragma unroll 4
            for (int i = 0; i < CHUNK / 2; ++i) {
                int const at = lane + i * 32, r = at / CHUNK, c = at % CHUNK, column = c0 + c;
                RowAt const row = rowAt(a, batch, row0 + r);
                u32 const pair = loadShared(stage + (r * UNITS + (c / 8 ^ (r & (UNITS - 1)))) * 16 + c % 8 / 2 * 4);
                if (row.has && column < a.n)
                    a.y[row.at + column].bits = u16(c % 2 ? pair >> 16 : pair);
            }
        }
        __syncwarp();
    }
}

} // namespace tw::cuda
