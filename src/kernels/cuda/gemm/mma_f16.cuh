// SPDX-License-Identifier: Apache-2.0
// Products of FP16 by mma.sync. After an epilogue of FP16.
//   int TILE_M, TILE_N, WARPS_M, WARPS_N, STAGES, SPLIT, BLOCKS_PER_SM, BIAS_AT, STAGING_AT, VECTOR_A, VECTOR_B
//   bool CLUSTERS, FINISHES, A_ALONG_K, B_ALONG_K, EARLY
#pragma once

#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/gemm/loaders_f16.cuh"

namespace tw::cuda::gemm_mma_f16 {

constexpr int WM = TILE_M / WARPS_M, WN = TILE_N / WARPS_N, BLOCKS_M = WM / 16, BLOCKS_N = WN / 8;
constexpr u32 A_BYTES = TILE_M * STEP * 2, STAGE_BYTES = (TILE_M + TILE_N) * STEP * 2;
// What a warp multiplies in 16 steps of k.
struct Factors
{
    u32 a[BLOCKS_M][4], b[BLOCKS_N / 2][4];
    // aAt and bAt: this lane's places in the tiles, at their first steps of k and the warp's first rows.
    TW_INLINE void take(u32 aAt, u32 bAt, u32 stage, int k)
    {
        u32 const as = stage, bs = stage + A_BYTES;
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i) {
            if constexpr (A_ALONG_K)
                loadMatrix4(a[i], as + (aAt ^ k * 32) + i * (16 * STEP * 2));
            else
                loadMatrix4Transposed(a[i], as + (aAt ^ i * 32) + k * (16 * TILE_M * 2));
        }
#pragma unroll
        for (int j = 0; j < BLOCKS_N / 2; ++j) {
            if constexpr (B_ALONG_K)
                loadMatrix4(b[j], bs + (bAt ^ k * 32) + j * (16 * STEP * 2));
            else
                loadMatrix4Transposed(b[j], bs + (bAt ^ j * 32) + k * (16 * TILE_N * 2));
        }
    }
};

struct Tile
{
    int batch, m0, n0;
};
// Blocks at the same time: up to 8 rows of tiles, so that they read the same columns.
TW_INLINE Tile tileAt(Args const& a, int i)
{
    int const tiles = a.tilesM * a.tilesN, batch = i / tiles, inBatch = i % tiles;
    int const band = inBatch / (8 * a.tilesN) * 8, height = min(8, a.tilesM - band), inBand = inBatch - band * a.tilesN;
    return {batch, (band + inBand % height) * TILE_M, inBand / height * TILE_N};
}
// What a thread has of a tile's sums lies in steps of 16 bytes times THREADS, in memory too.
TW_INLINE float* sumsOf(Args const& a, int tile, int rank)
{
    return a.sums + (i64(tile) * SPLIT + rank) * (TILE_M * TILE_N) + threadIdx.x * 4;
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) gemm(const __grid_constant__ Args a)
{
    extern __shared__ __align__(1024) u8 raw[];
    u32 const base = sharedAddress(raw), biases = base + BIAS_AT;
    int rank = 0;
    if constexpr (CLUSTERS)
        rank = clusterRank();
    else if constexpr (SPLIT > 1)
        rank = blockIdx.x % SPLIT;
    auto const [batch, m0, n0] = tileAt(a, blockIdx.x / SPLIT);
    int const all = (a.k + STEP - 1) / STEP, begin = all * rank / SPLIT, steps = all * (rank + 1) / SPLIT - begin;
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    Loader<A_ALONG_K, TILE_M, VECTOR_A> loadA;
    Loader<B_ALONG_K, TILE_N, VECTOR_B> loadB;
    loadA.begin(a.a + batch * a.batchA, a.lda, m0, a.m, begin * STEP, a.k);
    loadB.begin(a.b + batch * a.batchB, a.ldb, n0, a.n, begin * STEP, a.k);
    releaseDependents();
    BiasPart<TILE_N, THREADS> bias;
    if constexpr (FINISHES)
        bias.take(a, n0, tid);
    if constexpr (!EARLY)
        waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s)
        if (s < steps) {
            loadB.fetch(base + s * STAGE_BYTES + A_BYTES);
            loadB.put(base + s * STAGE_BYTES + A_BYTES);
        }
    if constexpr (EARLY)
        waitForPrevious();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps) {
            loadA.fetch(base + s * STAGE_BYTES);
            loadA.put(base + s * STAGE_BYTES);
        }
        copyCommit();
    }
    if constexpr (FINISHES)
        bias.put(biases, tid);
    int const row0 = warp / WARPS_N * WM, column0 = warp % WARPS_N * WN;
    u32 const aAt = A_ALONG_K ? unitAt<STEP / 8>(row0 + lane % 16, lane / 16)
                              : unitAt<TILE_M / 8>(lane / 16 * 8 + lane % 8, row0 / 8 + lane / 8 % 2);
    u32 const bAt = B_ALONG_K ? unitAt<STEP / 8>(column0 + lane / 16 * 8 + lane % 8, lane / 8 % 2)
                              : unitAt<TILE_N / 8>(lane % 16, column0 / 8 + lane / 16);
    float sum[BLOCKS_M][BLOCKS_N * 4] = {};
    u32 now = base, next = base + (STAGES - 1) * STAGE_BYTES; // stages
    Factors f[2];
    copyWait<STAGES - 2>();
    __syncthreads();
    f[0].take(aAt, bAt, now, 0);
    for (int step = 0; step < steps; ++step) {
        bool const more = step + STAGES - 1 < steps;
        u32 const to = next;
#pragma unroll
        for (int k = 0; k < STEP / 16; ++k) {
            // The next factors, from the next stage at the end: then all warps have read this one.
            if (k == STEP / 16 - 1) {
                copyWait<STAGES - 2>();
                __syncthreads();
                next = now;
                now = now + STAGE_BYTES == base + STAGES * STAGE_BYTES ? base : now + STAGE_BYTES;
            }
            f[(k + 1) % 2].take(aAt, bAt, now, (k + 1) % (STEP / 16));
            if (k == 0) {
                if (more) {
                    loadA.fetch(to);
                    loadB.fetch(to + A_BYTES);
                }
                copyCommit();
            }
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int j = 0; j < BLOCKS_N / 2; ++j) {
                    u32 const(&b)[4] = f[k % 2].b[j];
                    mma(*reinterpret_cast<float(*)[4]>(&sum[i][j * 8]), f[k % 2].a[i], b[0], b[1]);
                    mma(*reinterpret_cast<float(*)[4]>(&sum[i][j * 8 + 4]), f[k % 2].a[i], b[2], b[3]);
                }
        }
        if (more) { // through registers: before the next barrier but one
            loadA.put(to);
            loadB.put(to + A_BYTES);
        }
    }
    copyWait<0>();
    if constexpr (!FINISHES) { // finish() does
        float* const to = sumsOf(a, blockIdx.x / SPLIT, rank);
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int j = 0; j < BLOCKS_N; ++j) {
                float const* const v = &sum[i][j * 4];
                *reinterpret_cast<float4*>(to + (i * BLOCKS_N + j) * (THREADS * 4)) = float4{v[0], v[1], v[2], v[3]};
            }
        return;
    }
    constexpr int COLUMNS = CLUSTERS ? WN / SPLIT : WN;
    int const row = m0 + row0, column = column0 + rank * COLUMNS;
    Ahead residual;
    fetchResidual(a, residual, row, n0 + column, batch, lane);
    u32 const staging = base + STAGING_AT + warp * (32 * CHUNK);
    if constexpr (CLUSTERS) {
        // Each block of the cluster gets everybody's sums of its part of each warp's columns, 16 bytes a thread, and
        // adds them up.
        constexpr int PART = CLUSTERS ? BLOCKS_N / SPLIT : 1;
        clusterSync(); // all stages are read
#pragma unroll
        for (int o = 0; o < SPLIT; ++o) {
            u32 const to = addressAt(base + (rank * BLOCKS_M * PART * THREADS + tid) * 16, o);
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int j = 0; j < PART; ++j) {
                    float const* const v = &sum[i][(o * PART + j) * 4];
                    storeCluster(to + (i * PART + j) * (THREADS * 16), v[0], v[1], v[2], v[3]);
                }
        }
        clusterSync();
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i) {
            float v[PART * 4] = {};
#pragma unroll
            for (int o = 0; o < SPLIT; ++o)
#pragma unroll
                for (int j = 0; j < PART; ++j) {
                    Unit const x = loadSharedUnit(base + (((o * BLOCKS_M + i) * PART + j) * THREADS + tid) * 16);
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        v[j * 4 + e] += __uint_as_float(x.v[e]);
                }
            writeRows(a, v, row + i * 16, n0 + column, batch, staging, biases + column * 4, residual,
                      i + 1 < BLOCKS_M ? row + i * 16 + 16 : -1, lane);
        }
    } else {
        __syncthreads(); // all stages are read
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
            writeRows(a, sum[i], row + i * 16, n0 + column, batch, staging, biases + column * 4, residual,
                      i + 1 < BLOCKS_M ? row + i * 16 + 16 : -1, lane);
    }
}

} // namespace tw::cuda::gemm_mma_f16
