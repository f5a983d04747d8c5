// SPDX-License-Identifier: Apache-2.0
// Matrix products of any operands: tiles of 64 x 64, 16 steps of k.
//   bool GATED; type T; float activate(float)
#pragma once

#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops {

TW_KERNEL multiply(const __grid_constant__ PlainGemmParams p)
{
    __shared__ float as[16][68]; // [k, m]
    __shared__ float bs[16][68]; // [k, n]
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
    float sum[HALVES][4][4] = {};
#pragma unroll
    for (int h = 0; h < HALVES; ++h)
        for (idx k0 = 0; k0 < k; k0 += 16) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                idx const row = m0 + am + amStep * r, ka = k0 + ak + akStep * r;
                as[ak + akStep * r][am + amStep * r] =
                    row < m && ka < k ? load<float>(a[off(row) * off(p.aRow) + off(ka) * off(p.aColumn)]) : 0;
                idx const column = n0 + bn + bnStep * r, kb = k0 + bk + bkStep * r;
                bs[bk + bkStep * r][bn + bnStep * r] =
                    column < n && kb < k ? load<float>(b[off(kb) * off(p.bRow) + off(column + h * n) * off(p.bColumn)])
                                         : 0;
            }
            __syncthreads();
#pragma unroll
            for (int q = 0; q < 16; ++q) {
                float va[4], vb[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    va[i] = as[q][ty + i];
                    vb[i] = bs[q][tx + i];
                }
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j)
                        sum[h][i][j] += va[i] * vb[j];
            }
            __syncthreads();
        }
    i64 const first = i64(batch) * p.m * p.n;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            idx const row = m0 + ty + i, column = n0 + tx + j;
            if (row >= m || column >= n)
                continue;
            float v = sum[0][i][j];
            if (p.bias)
                v += load<float>(static_cast<T const*>(p.bias)[column]);
            if constexpr (GATED) {
                float u = sum[1][i][j];
                if (p.bias)
                    u += load<float>(static_cast<T const*>(p.bias)[n + column]);
                static_cast<T*>(p.y)[first + i64(row) * p.n + column] = store<T>(activate(v) * u);
                continue;
            }
            i64 const at = first + i64(row) * p.n + column;
            if (p.residual)
                v += load<float>(static_cast<T const*>(p.residual)[at]);
            static_cast<T*>(p.y)[at] = store<T>(activate(v));
        }
}

} // namespace tw::ops
