// SPDX-License-Identifier: Apache-2.0
// Products of FP32 by mma.sync, 3xTF32 or rounded to TF32.
//   bool TF32X3; int TILE_M, TILE_N, WARPS_M, WARPS_N, STAGES, SPLIT, BLOCKS_PER_SM
#pragma once

#include "kernels/cuda/common/factors.cuh"
#include "kernels/cuda/gemm/loaders_f32.cuh"

namespace tw::cuda::gemm_f32 {

constexpr int WM = TILE_M / WARPS_M, WN = TILE_N / WARPS_N, BLOCKS_M = WM / 16, BLOCKS_N = WN / 8;
constexpr int A_FLOATS = TILE_M * STEP, STAGE_FLOATS = (TILE_M + TILE_N) * STEP;
// Numbers t and t + 4 of k (t = lane % 4) from 8 u on, of rows g and g + 8 from row0 on.
TW_INLINE void takeA(float const* tile, int row0, int u, int lane, Factors<4>& f)
{
    float v[4];
    if constexpr (A_ALONG_K) {
        loadBlocks(v, sharedAddress(tile + unitAt(row0 + lane % 16, u * 2 + lane / 16)));
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            v[i] = tile[placeAt<TILE_M>(u * 8 + lane % 4 + i / 2 * 4, row0 + lane / 4 + i % 2 * 8)];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        f.set(i, v[i]);
}
// The same of columns g, then of columns g + 8.
TW_INLINE void takeB(float const* tile, int column0, int u, int lane, Factors<2> (&f)[2])
{
    float v[4];
    if constexpr (B_ALONG_K) {
        loadBlocks(v, sharedAddress(tile + unitAt(column0 + lane / 16 * 8 + lane % 8, u * 2 + lane / 8 % 2)));
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            v[i] = tile[placeAt<TILE_N>(u * 8 + lane % 4 + i % 2 * 4, column0 + lane / 4 + i / 2 * 8)];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        f[i / 2].set(i % 2, v[i]);
}
// A pair of y's columns.
TW_INLINE void finish(Params const& p, idx batch, int row, int column, float x0, float x1)
{
    int const n = int(p.n);
    if (row >= int(p.m) || column >= n)
        return;
    bool const both = PACKS_Y || column + 1 < n;
    i64 const at = (i64(batch) * p.m + row) * n + column;
    if constexpr (BIAS) {
        x0 += p.bias[column];
        if (both)
            x1 += p.bias[column + 1];
    }
    if constexpr (RESIDUAL) {
        if constexpr (PACKS_Y) {
            float2 const r = *reinterpret_cast<float2 const*>(p.residual + at);
            x0 += r.x;
            x1 += r.y;
        } else {
            x0 += p.residual[at];
            if (both)
                x1 += p.residual[at + 1];
        }
    }
    if constexpr (PACKS_Y)
        *reinterpret_cast<float2*>(p.y + at) = float2{activate(x0), activate(x1)};
    else {
        p.y[at] = activate(x0);
        if (both)
            p.y[at + 1] = activate(x1);
    }
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) gemm(const __grid_constant__ Params p)
{
    extern __shared__ __align__(16) float tiles[];
    int rank = 0;
    if constexpr (SPLIT > 1)
        rank = clusterRank();
    idx const block = blockIdx.x / SPLIT, rest = divide(block, p.tilesN), batch = divide(rest, p.tilesM);
    int const m0 = int(rest - batch * idx(p.tilesM.d)) * TILE_M, n0 = int(block - rest * idx(p.tilesN.d)) * TILE_N;
    off at[2];
    locate<8>(p.batch, batch, at);
    int const m = int(p.m), n = int(p.n), k = int(p.k), all = (k + STEP - 1) / STEP;
    int const begin = all * rank / SPLIT, steps = all * (rank + 1) / SPLIT - begin;
    Loader<A_ALONG_K, TILE_M, PACKS_A ? 4 : 1> loadA;
    Loader<B_ALONG_K, TILE_N, PACKS_B ? 4 : 1> loadB;
    loadA.begin(p.a + at[0], p.lda, m0, m, begin * STEP, k);
    loadB.begin(p.b + at[1], p.ldb, n0, n, begin * STEP, k);
    releaseDependents();
    if constexpr (!EARLY)
        waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s)
        if (s < steps)
            loadB.next(tiles + s * STAGE_FLOATS + A_FLOATS);
    if constexpr (EARLY)
        waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps)
            loadA.next(tiles + s * STAGE_FLOATS);
        copyCommit();
    }
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const row0 = warp / WARPS_N * WM, column0 = warp % WARPS_N * WN;
    float sum[BLOCKS_M][BLOCKS_N][4] = {};
    int now = 0, next = (STAGES - 1) * STAGE_FLOATS; // stages
    for (int step = 0; step < steps; ++step) {
        copyWait<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < steps) {
            loadA.next(tiles + next);
            loadB.next(tiles + next + A_FLOATS);
        }
        copyCommit();
        float const *const as = tiles + now, *const bs = as + A_FLOATS;
        next = now;
        now = now + STAGE_FLOATS == STAGES * STAGE_FLOATS ? 0 : now + STAGE_FLOATS;
        float part[TF32X3 ? BLOCKS_M : 1][TF32X3 ? BLOCKS_N : 1][4] = {};
#pragma unroll
        for (int u = 0; u < STEP / 8; ++u) {
            Factors<4> x[BLOCKS_M];
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
                takeA(as, row0 + i * 16, u, lane, x[i]);
#pragma unroll
            for (int j = 0; j < BLOCKS_N; j += 2) {
                Factors<2> w[2];
                takeB(bs, column0 + j * 8, u, lane, w);
#pragma unroll
                for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        if constexpr (TF32X3)
                            multiply(part[i][j + h], x[i], w[h]);
                        else
                            multiply(sum[i][j + h], x[i], w[h]);
                    }
            }
        }
        if constexpr (TF32X3) {
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int j = 0; j < BLOCKS_N; ++j)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        sum[i][j][e] += part[i][j][e];
        }
    }
    int const g = lane / 4, t = lane % 4;
    if constexpr (SPLIT > 1) {
        // Each block of the cluster gets everybody's sums of its rows and adds up.
        constexpr int PART = TILE_M / SPLIT, PAIRS = TILE_N / 2;
        copyWait<0>();
        clusterSync(); // all stages are read
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int const row = row0 + i * 16 + h * 8 + g;
                u32 const to =
                    addressAt(sharedAddress(tiles + (rank * PART + row % PART) * TILE_N + column0 + t * 2), row / PART);
#pragma unroll
                for (int j = 0; j < BLOCKS_N; ++j)
                    storeCluster(to + j * 32, sum[i][j][h * 2], sum[i][j][h * 2 + 1]);
            }
        clusterSync();
        for (int s = threadIdx.x; s < PART * PAIRS; s += THREADS) {
            int const row = s / PAIRS, column = s % PAIRS * 2;
            float x0 = 0, x1 = 0;
#pragma unroll
            for (int o = 0; o < SPLIT; ++o) {
                float2 const v = *reinterpret_cast<float2 const*>(tiles + (o * PART + row) * TILE_N + column);
                x0 += v.x;
                x1 += v.y;
            }
            finish(p, batch, m0 + rank * PART + row, n0 + column, x0, x1);
        }
    } else {
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (int j = 0; j < BLOCKS_N; ++j)
                    finish(p, batch, m0 + row0 + i * 16 + h * 8 + g, n0 + column0 + j * 8 + t * 2, sum[i][j][h * 2],
                           sum[i][j][h * 2 + 1]);
    }
}

} // namespace tw::cuda::gemm_f32
