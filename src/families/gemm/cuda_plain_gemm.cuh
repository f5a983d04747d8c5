// SPDX-License-Identifier: Apache-2.0
// Matrix products of any operands: tiles of 64 x 64, 16 words of k at a time.
// After cuda_plain_gemm_floats.cuh or cuda_plain_gemm_integers.cuh.
//   bool GATED; type T, of the factors
#pragma once

#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops {

TW_KERNEL multiply(const __grid_constant__ PlainGemmParams p)
{
    constexpr int STEP = 16 * kFactors;
    __shared__ Factors as[16][68]; // [k, m]
    __shared__ Factors bs[16][68]; // [k, n]
    idx const block = blockIdx.x, rest = divide(block, p.tilesN), batch = divide(rest, p.tilesM);
    idx const m0 = (rest - batch * idx(p.tilesM.d)) * 64, n0 = (block - rest * idx(p.tilesN.d)) * 64;
    idx const m = idx(p.m), n = idx(p.n), k = idx(p.k);
    off at[2];
    locate<8>(p.batch, batch, at);
    T const* const a = static_cast<T const*>(p.a) + at[0];
    T const* const b = static_cast<T const*>(p.b) + at[1];
    int const t = threadIdx.x;
    // Threads walk along the side that lies together in memory.
    bool const aAlongK = p.aColumn == 1, bAlongK = p.bRow == 1 && p.bColumn != 1;
    int const ak = aAlongK ? t % 16 : t / 64, am = aAlongK ? t / 16 : t % 64;
    int const akStep = aAlongK ? 0 : 4, amStep = aAlongK ? 16 : 0;
    int const bk = bAlongK ? t % 16 : t / 64, bn = bAlongK ? t / 16 : t % 64;
    int const bkStep = bAlongK ? 0 : 4, bnStep = bAlongK ? 16 : 0;
    int const ty = t / 16 * 4, tx = t % 16 * 4;
    constexpr int HALVES = GATED ? 2 : 1; // of b's columns, which are n each
    Sum sum[4][4][HALVES] = {};
#pragma unroll
    for (int h = 0; h < HALVES; ++h)
        for (idx k0 = 0; k0 < k; k0 += STEP) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                idx const row = m0 + am + amStep * r, ka = k0 + (ak + akStep * r) * kFactors;
                as[ak + akStep * r][am + amStep * r] = gather([&](int i) {
                    return row < m && ka + i < k ? load<Sum>(a[off(row) * off(p.aRow) + off(ka + i) * off(p.aColumn)])
                                                 : Sum(0);
                });
                idx const column = n0 + bn + bnStep * r, kb = k0 + (bk + bkStep * r) * kFactors;
                bs[bk + bkStep * r][bn + bnStep * r] = gather([&](int i) {
                    return column < n && kb + i < k
                               ? load<Sum>(b[off(kb + i) * off(p.bRow) + off(column + h * n) * off(p.bColumn)])
                               : Sum(0);
                });
            }
            __syncthreads();
#pragma unroll
            for (int q = 0; q < 16; ++q) {
                Factors va[4], vb[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    va[i] = as[q][ty + i];
                    vb[i] = bs[q][tx + i];
                }
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        accumulate(sum[i][j][h], va[i], vb[j]);
            }
            __syncthreads();
        }
    i64 const first = i64(batch) * p.m * p.n;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            idx const row = m0 + ty + i, column = n0 + tx + j;
            if (row < m && column < n)
                finish(p, first + i64(row) * p.n + column, column, sum[i][j]);
        }
}

} // namespace tw::ops
