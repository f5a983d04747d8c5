// SPDX-License-Identifier: Apache-2.0
// Products of i8 by mma.sync. After integerEndSource().
//   int TILE_M, TILE_N, WARPS_M, WARPS_N, STAGES, SPLIT, BLOCKS_PER_SM, VECTOR_A, VECTOR_B, STEP, THREADS
//   bool A_ALONG_K, B_ALONG_K, EARLY, ALIGNED
#pragma once

#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/gemm/loaders_i8.cuh"

namespace tw::cuda::gemm_mma_i8 {

constexpr int WM = TILE_M / WARPS_M, WN = TILE_N / WARPS_N, BLOCKS_M = WM / 16, BLOCKS_N = WN / 16;
constexpr u32 A_BYTES = TILE_M * STEP, STAGE_BYTES = (TILE_M + TILE_N) * STEP;
// What a warp multiplies in 32 steps of k.
struct Factors
{
    u32 a[BLOCKS_M][4], b[BLOCKS_N][4];
    // aAt and bAt: this lane's places in the tiles, at their first steps of k and the warp's first rows.
    TW_INLINE void take(u32 aAt, u32 bAt, u32 stage, int k)
    {
        u32 const as = stage, bs = stage + A_BYTES;
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
            loadFactors<A_ALONG_K>(a[i], A_ALONG_K ? as + (aAt ^ k * 32) + i * 16 * STEP
                                                   : as + (aAt ^ i * 16) + k * 32 * TILE_M);
#pragma unroll
        for (int j = 0; j < BLOCKS_N; ++j)
            loadFactors<B_ALONG_K>(b[j], B_ALONG_K ? bs + (bAt ^ k * 32) + j * 16 * STEP
                                                   : bs + (bAt ^ j * 16) + k * 32 * TILE_N);
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
// How far into a and b a batch's matrices lie.
TW_INLINE void locateBatch(Args const& a, int batch, i64 (&at)[2])
{
    at[0] = at[1] = 0;
    if (a.batches == 1)
        return;
#pragma unroll
    for (int d = 7; d >= 0; --d) {
        Div const& dim = a.batch.dim[d];
        int const q = int((__umulhi(u32(batch), dim.m) + u32(batch)) >> dim.s), c = batch - q * int(dim.d);
        at[0] += c * a.batch.stride[0][d];
        at[1] += c * a.batch.stride[1][d];
        batch = q;
    }
}

// Writes 16 PART columns from `column` on of the warp's rows from `row` on.
template <int PART>
TW_INLINE void write(Args const& a, Sums16 const (&sum)[BLOCKS_M][PART], int batch, int row, int column, int lane)
{
    constexpr int GROUPS = PART % 2 == 0 ? 2 : 1;
    EndNumbers const numbers = endNumbers(a.end);
    i64 const base = (i64(batch) * a.m + row + lane / 4 * 2) * a.n + column;
#pragma unroll
    for (int j = 0; j < PART; j += GROUPS) {
        int const left = a.n - column - j * 16;
        EndColumns<GROUPS> ends;
        ends.take(a.end, column + j * 16, left, lane);
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                i32 v[GROUPS][4];
#pragma unroll
                for (int g = 0; g < GROUPS; ++g)
                    sum[i][j + g].row(v[g], h);
                i64 const at = base + i64(i * 16 + h) * a.n + j * 16;
                ends.put(v, numbers, a.end.table, static_cast<EndElement*>(a.y) + at,
                         static_cast<EndResidual const*>(a.end.residual) + at,
                         row + i * 16 + lane / 4 * 2 + h < a.m ? left : 0, lane);
            }
    }
}

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) gemm(const __grid_constant__ Args a)
{
    extern __shared__ __align__(1024) u8 raw[];
    u32 const base = sharedAddress(raw);
    int rank = 0;
    if constexpr (SPLIT > 1)
        rank = clusterRank();
    auto const [batch, m0, n0] = tileAt(a, blockIdx.x / SPLIT);
    int const all = (a.k + STEP - 1) / STEP, begin = all * rank / SPLIT, steps = all * (rank + 1) / SPLIT - begin;
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    i64 at[2];
    locateBatch(a, batch, at);
    Loader<A_ALONG_K, TILE_M, VECTOR_A> loadA;
    Loader<B_ALONG_K, TILE_N, VECTOR_B> loadB;
    loadA.begin(a.a + at[0], a.a + a.endA, a.lda, m0, a.m, begin * STEP, a.k);
    loadB.begin(a.b + at[1], a.b + a.endB, a.ldb, n0, a.n, begin * STEP, a.k);
    releaseDependents();
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
    int const row0 = warp / WARPS_N * WM, column0 = warp % WARPS_N * WN;
    u32 const aAt = A_ALONG_K ? unitAt<true, TILE_M>(row0 + factorRow(lane), lane / 16)
                              : unitAt<false, TILE_M>(factorStep(lane), row0 / 16);
    u32 const bAt = B_ALONG_K ? unitAt<true, TILE_N>(column0 + factorRow(lane), lane / 16)
                              : unitAt<false, TILE_N>(factorStep(lane), column0 / 16);
    Sums16 sum[BLOCKS_M][BLOCKS_N];
#pragma unroll
    for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
        for (int j = 0; j < BLOCKS_N; ++j)
            sum[i][j].clear();
    u32 now = base, next = base + (STAGES - 1) * STAGE_BYTES; // stages
    Factors f[2];
    copyWait<STAGES - 2>();
    __syncthreads();
    f[0].take(aAt, bAt, now, 0);
    for (int step = 0; step < steps; ++step) {
        bool const more = step + STAGES - 1 < steps;
        u32 const to = next;
#pragma unroll
        for (int k = 0; k < STEP / 32; ++k) {
            // The next factors, from the next stage at the end: then all warps have read this one.
            if (k == STEP / 32 - 1) {
                copyWait<STAGES - 2>();
                __syncthreads();
                next = now;
                now = now + STAGE_BYTES == base + STAGES * STAGE_BYTES ? base : now + STAGE_BYTES;
            }
            f[(k + 1) % 2].take(aAt, bAt, now, (k + 1) % (STEP / 32));
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
                for (int j = 0; j < BLOCKS_N; ++j)
                    sum[i][j].add(f[k % 2].a[i], f[k % 2].b[j]);
        }
        if (more) { // through registers: before the next barrier but one
            loadA.put(to);
            loadB.put(to + A_BYTES);
        }
    }
    copyWait<0>();
    if constexpr (SPLIT == 1) {
        write(a, sum, batch, m0 + row0, n0 + column0, lane);
    } else {
        // Each block of the cluster gets everybody's sums of its part of each warp's columns, 16 bytes a thread, and
        // adds them up.
        constexpr int PART = BLOCKS_N / SPLIT;
        clusterSync(); // all stages are read
#pragma unroll
        for (int o = 0; o < SPLIT; ++o) {
            u32 const to = addressAt(base + (rank * BLOCKS_M * PART * 2 * THREADS + tid) * 16, o);
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int j = 0; j < PART * 2; ++j) {
                    i32 const* const v = sum[i][o * PART + j / 2].d[j % 2];
                    storeCluster(to + (i * PART * 2 + j) * (THREADS * 16), __int_as_float(v[0]), __int_as_float(v[1]),
                                 __int_as_float(v[2]), __int_as_float(v[3]));
                }
        }
        clusterSync();
        Sums16 all[BLOCKS_M][PART];
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int j = 0; j < PART * 2; ++j) {
                i32(&v)[4] = all[i][j / 2].d[j % 2];
                v[0] = v[1] = v[2] = v[3] = 0;
#pragma unroll
                for (int o = 0; o < SPLIT; ++o) {
                    Unit const x = loadSharedUnit(base + (((o * BLOCKS_M + i) * PART * 2 + j) * THREADS + tid) * 16);
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        v[e] += i32(x.v[e]);
                }
            }
        write(a, all, batch, m0 + row0, n0 + column0 + rank * PART * 16, lane);
    }
}

} // namespace tw::cuda::gemm_mma_i8
