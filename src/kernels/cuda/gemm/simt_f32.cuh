// SPDX-License-Identifier: Apache-2.0
// Products of FP32, exact. A thread has ROWS x COLUMNS sums.
//   int TILE_M, TILE_N, ROWS, COLUMNS, STAGES, SPLIT, BLOCKS_PER_SM
#pragma once

#include "kernels/cuda/gemm/loaders_f32.cuh"

namespace tw::cuda::gemm_f32 {

constexpr int TY = TILE_M / ROWS, TX = TILE_N / COLUMNS;
constexpr int WARPS_X = TX / 8; // a warp: 4 x 8 threads
constexpr int A_FLOATS = TILE_M * STEP, STAGE_FLOATS = (TILE_M + TILE_N) * STEP;
// Rows of thread t of T: t, t + T, ... where k is contiguous, else fours.
template <bool ALONG_K, int T>
TW_INLINE constexpr int rowOf(int t, int i)
{
    return ALONG_K ? t + i * T : t * 4 + i / 4 * (T * 4) + i % 4;
}
// Four steps of k, from 4 u on.
template <bool ALONG_K, int TILE, int R>
TW_INLINE void takeRows(float const* tile, int t, int u, float (&f)[R][4])
{
    constexpr int T = TILE / R;
    if constexpr (ALONG_K) {
#pragma unroll
        for (int i = 0; i < R; ++i) {
            // Eight rows further a unit lies at the same place.
            int const at = T % 8 == 0 ? unitAt(t, u) + i * T * STEP : unitAt(t + i * T, u);
            float4 const v = *reinterpret_cast<float4 const*>(tile + at);
            f[i][0] = v.x;
            f[i][1] = v.y;
            f[i][2] = v.z;
            f[i][3] = v.w;
        }
    } else {
#pragma unroll
        for (int q = 0; q < 4; ++q)
#pragma unroll
            for (int i = 0; i < R; i += 4) {
                float4 const v = *reinterpret_cast<float4 const*>(tile + (u * 4 + q) * TILE + rowOf<false, T>(t, i));
                f[i][q] = v.x;
                f[i + 1][q] = v.y;
                f[i + 2][q] = v.z;
                f[i + 3][q] = v.w;
            }
    }
}
// Four columns of y, from `column` on in steps of 1, or of TX where b's k is contiguous.
constexpr int APART = B_ALONG_K ? TX : 1;
TW_INLINE void finish(Params const& p, idx batch, int row, int column, float (&v)[4])
{
    int const n = int(p.n);
    if (row >= int(p.m) || column >= n)
        return;
    i64 const at = (i64(batch) * p.m + row) * n + column;
    if constexpr (!B_ALONG_K && PACKS_Y) {
        if constexpr (BIAS) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                v[e] += p.bias[column + e];
        }
        if constexpr (RESIDUAL) {
            float4 const r = *reinterpret_cast<float4 const*>(p.residual + at);
            v[0] += r.x;
            v[1] += r.y;
            v[2] += r.z;
            v[3] += r.w;
        }
        *reinterpret_cast<float4*>(p.y + at) = float4{activate(v[0]), activate(v[1]), activate(v[2]), activate(v[3])};
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (column + e * APART >= n)
                break;
            float x = v[e];
            if constexpr (BIAS)
                x += p.bias[column + e * APART];
            if constexpr (RESIDUAL)
                x += p.residual[at + e * APART];
            p.y[at + e * APART] = activate(x);
        }
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
    float const *const a = p.a + at[0], *const b = p.b + at[1];
    int const m = int(p.m), n = int(p.n), k = int(p.k), all = (k + STEP - 1) / STEP;
    int const begin = all * rank / SPLIT, steps = all * (rank + 1) / SPLIT - begin;
    Loader<A_ALONG_K, TILE_M, PACKS_A ? 4 : 1> loadA;
    Loader<B_ALONG_K, TILE_N, PACKS_B ? 4 : 1> loadB;
    loadA.begin(a, p.lda, m0, m, begin * STEP, k);
    loadB.begin(b, p.ldb, n0, n, begin * STEP, k);
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
    int const tx = warp % WARPS_X * 8 + lane % 8, ty = warp / WARPS_X * 4 + lane / 8;
    float sum[ROWS][COLUMNS] = {};
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
#pragma unroll
        for (int u = 0; u < STEP / 4; ++u) {
            float x[ROWS][4], w[COLUMNS][4];
            takeRows<A_ALONG_K, TILE_M>(as, ty, u, x);
            takeRows<B_ALONG_K, TILE_N>(bs, tx, u, w);
#pragma unroll
            for (int q = 0; q < 4; ++q)
#pragma unroll
                for (int i = 0; i < ROWS; ++i)
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
                        sum[i][j] = fmaf(x[i][q], w[j][q], sum[i][j]);
        }
    }
    if constexpr (SPLIT > 1) {
        // Each block of the cluster gets everybody's sums of its rows, four columns of a thread together, and adds up.
        constexpr int PART = TILE_M / SPLIT, FOURS = TILE_N / 4;
        copyWait<0>();
        clusterSync(); // all stages are read
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            int const row = rowOf<A_ALONG_K, TY>(ty, i);
            u32 const to = addressAt(sharedAddress(tiles + (rank * PART + row % PART) * TILE_N), row / PART);
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4)
                storeCluster(to + (j / 4 * TX + tx) * 16, sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
        }
        clusterSync();
        for (int s = threadIdx.x; s < PART * FOURS; s += THREADS) {
            int const row = s / FOURS, j = s % FOURS / TX, x = s % TX;
            float v[4] = {};
#pragma unroll
            for (int o = 0; o < SPLIT; ++o) {
                float4 const w = *reinterpret_cast<float4 const*>(tiles + (o * PART + row) * TILE_N + s % FOURS * 4);
                v[0] += w.x;
                v[1] += w.y;
                v[2] += w.z;
                v[3] += w.w;
            }
            finish(p, batch, m0 + rank * PART + row, n0 + rowOf<B_ALONG_K, TX>(x, j * 4), v);
        }
    } else {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4) {
                float v[4] = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
                finish(p, batch, m0 + rowOf<A_ALONG_K, TY>(ty, i), n0 + rowOf<B_ALONG_K, TX>(tx, j), v);
            }
    }
}

} // namespace tw::cuda::gemm_f32
