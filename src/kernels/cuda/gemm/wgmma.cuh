// SPDX-License-Identifier: Apache-2.0
// Products by wgmma, of FP16, TF32 or i8, of images too. After wgmma(), writeRows() and writeColumns().
#pragma once

#include "kernels/cuda/gemm/wgmma_first_norm.cuh"
#include "kernels/cuda/gemm/wgmma_gate.cuh"
#include "kernels/cuda/gemm/wgmma_norm.cuh"
#include "kernels/cuda/gemm/wgmma_tiles.cuh"

namespace tw::cuda::gemm_f16 {

// TW_PARAMETERS: maps of y and of the residual, the norms and a third axis, where there are any; TW_Y, TW_RESIDUAL, TW_NORM,
// TW_FIRST_NORM, TW_VOLUME: their addresses.
TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM)
    gemm(const __grid_constant__ TensorMap mapP, const __grid_constant__ TensorMap mapQ,
         TW_PARAMETERS const __grid_constant__ Args a)
{
    TensorMap const *const residualMap = TW_RESIDUAL, *const yMap = TW_Y;
    Norm const* const norm = TW_NORM;
    FirstNorm const* const firstNorm = TW_FIRST_NORM;
    Volume const* const volume = TW_VOLUME;
    constexpr bool CLUSTERED = MULTICAST > 1;
    u32 const base = stagesAt(), staging = base + STAGES * STAGE_BYTES;
    u32 const biases = staging + STAGING_BYTES; // [group][2][COLUMNS]: this tile's and the next one's; NORM: see there
    u32 const sums = biases + BIAS_BYTES;       // OWN_SUMS: [block of the cluster][its part of this block's columns]
    u32 const full = sums + SUMS_BYTES, empty = full + STAGES * 8,
              arrived = empty + STAGES * 8, // residual of each warp
        rowsAt = full + BARRIER_BYTES;      // FIRST_NORM: mean and scale of each row
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const rank = NORM ? blockIdx.x % NEIGHBOURS : SPLIT * MULTICAST > 1 ? clusterRank() : 0;
    int const units = a.tilesP * a.tilesQ * a.batches;
    int const firstUnit = blockIdx.x / NEIGHBOURS, unitStep = gridDim.x / NEIGHBOURS;
    StepRange const ofAll(a.steps, rank); // of phases: see there
    if (threadIdx.x == 0) {
#pragma unroll
        for (int s = 0; s < STAGES; ++s) {
            barrierInit(full + s * 8, 1);
            barrierInit(empty + s * 8, (PING_PONG ? 1 : GROUPS) * MULTICAST);
        }
        if constexpr (COPIES && RESIDUAL)
#pragma unroll
            for (int w = 0; w < GROUPS * 4 * (AHEAD ? 2 : 1); ++w)
                barrierInit(arrived + w * 8, 1);
        barrierInitFence();
    }
    if (warp == GROUPS * 4 && lane == 0) {
        prefetchMap(&mapP);
        prefetchMap(&mapQ);
    }
    if constexpr (CLUSTERED)
        clusterSync();
    else
        __syncthreads();
    if constexpr (SPLIT > 1 && OWN_SUMS)
        clusterArrive();

    if (warp >= GROUPS * 4) {
        if constexpr (REDISTRIBUTE)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(IMAGE ? 56 : 40));
        if (warp == GROUPS * 4 && lane == 0) {
            int s = 0;
            u32 parity = 1;
            bool first = true;
            for (int unit = firstUnit; unit < units; unit += unitStep) {
                Tile const t = tileAt(a, unit, rank);
                auto const [begin, end] = StepRange(a, ofAll, t, rank);
                Cursor at;
                at.begin(a, volume, t, begin);
                int step = begin;
                if (first) {
                    int const early = EARLY ? min(STAGES, end - begin) : 0;
                    Cursor ahead = at;
                    for (int i = 0; i < early; ++i, ahead.next(a, volume)) {
                        u32 const to = base + i * STAGE_BYTES;
                        barrierExpect(full + i * 8, STAGE_BYTES);
                        if constexpr (SWAP)
                            loadP(&mapP, a, volume, to, full + i * 8, ahead);
                        else
                            loadQ(&mapQ, a, to + P_BYTES, full + i * 8, ahead, rank);
                    }
                    waitForPrevious();
                    for (int i = 0; i < early; ++i, at.next(a, volume)) {
                        u32 const to = base + i * STAGE_BYTES;
                        if constexpr (SWAP)
                            loadQ(&mapQ, a, to + P_BYTES, full + i * 8, at, rank);
                        else
                            loadP(&mapP, a, volume, to, full + i * 8, at);
                    }
                    step += early;
                    s = early % STAGES;
                    parity = early == STAGES ? 0 : 1;
                    first = false;
                }
                for (; step < end; ++step, at.next(a, volume)) {
                    barrierWait(empty + s * 8, parity);
                    barrierExpect(full + s * 8, STAGE_BYTES);
                    u32 const to = base + s * STAGE_BYTES;
                    loadP(&mapP, a, volume, to, full + s * 8, at);
                    loadQ(&mapQ, a, to + P_BYTES, full + s * 8, at, rank);
                    if (++s == STAGES) {
                        s = 0;
                        parity ^= 1;
                    }
                }
            }
        }
        if constexpr (FIRST_NORM > 0)
            if (warp > GROUPS * 4)
                measureRows(*firstNorm, rowsAt, SWAP && SPLIT > 1 ? rank * COLUMNS : 0, SWAP ? COLUMNS : kFirstRows,
                            warp - GROUPS * 4 - 1, lane);
        __syncwarp();
        if constexpr (SPLIT > 1) {
            if constexpr (!OWN_SUMS)
                clusterArrive();
            clusterWait();
            clusterSync();
        }
        // The other of the pair arrives at this block's barriers until here.
        if constexpr (MULTICAST > 1)
            clusterSync();
    } else {
        if constexpr (REDISTRIBUTE)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(IMAGE ? 224 : 232));
        int const group = warp / 4, inGroup = threadIdx.x % 128;
        u32 const ownStage = staging + warp * WARP_BYTES * (AHEAD ? 2 : 1),
                  ownArrived = arrived + warp * (AHEAD ? 16 : 8);
        u32 done = 0; // steps of this block before this tile
        int turn = 0;
        if constexpr (NORM > 0) {
            for (int i = threadIdx.x; i < TILE_Q; i += GROUPS * 128) {
                int const c = rank * TILE_Q + i;
                if constexpr (BIAS)
                    storeShared(biases + i * 4, __float_as_uint(a.bias[c]));
                storeShared(biases + (TILE_Q + i) * 4, __float_as_uint(norm->gamma[c]));
                storeShared(biases + (TILE_Q * 2 + i) * 4, __float_as_uint(norm->beta[c]));
            }
            groupSync(1, GROUPS * 128);
        }
        waitForPrevious(); // y and residual belong to it
        releaseDependents();
        if constexpr (TABLE_BYTES > 0) {
            fillTable(a);
            groupSync(1, GROUPS * 128);
        }
        if constexpr (PING_PONG)
            if (group == 1 && firstUnit < units)
                groupArrive(2, 256);
        for (int unit = firstUnit; unit < units; unit += unitStep, ++turn) {
            if (PING_PONG && turn % 2 != group) {
                done += ofAll.end - ofAll.begin; // of phases there is no ping-pong
                continue;
            }
            Tile const t = tileAt(a, unit, rank);
            auto const [begin, end] = StepRange(a, ofAll, t, rank);
            int const row0 = t.p + (PING_PONG ? 0 : group * ROWS) + warp % 4 * 16;
            int const column0 = t.q + (SPLIT > 1 ? rank * COLUMNS : 0);
            int const own = PING_PONG ? turn / 2 : turn; // of this group's tiles
            u32 const stage = ownStage + (AHEAD ? own % 2 * WARP_BYTES : 0);
            u32 const biasAt = biases + (group * 2 + own % 2) * COLUMNS * COLUMN_END_BYTES;
            ColumnEnds<INTEGERS, SWAP ? 1 : COLUMNS, 128> ends;
            RowEnds<INTEGERS> rowEnds[SWAP ? BLOCKS : 1];
            if constexpr (SWAP)
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b) {
                    rowEnds[b].take(a, row0 + b * 64 + lane / 4);
                    takeGateBias(a, rowEnds[b], row0 + b * 64 + lane / 4);
                }
            OwnColumns ownColumns[SWAP ? BLOCKS : 1];
            if constexpr (SWAP && FIRST_NORM > 0)
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b)
                    ownColumns[b].take(*firstNorm, row0 + b * 64 + lane / 4);
            Ahead ahead;
            if constexpr (!SWAP && !NORM)
                ends.take(a, column0, inGroup);
            if constexpr (!SWAP && !COPIES && !LATE)
                fetchResidual(a, ahead, row0, column0, t.batch, lane);
            Sum d[BLOCKS][TILE_Q / 2];
            int s = done % STAGES;
            u32 parity = done / STAGES & 1;
            // A group that waits for its turn waits for what it has stored, too.
            constexpr bool FETCHES_FIRST = PING_PONG && INTEGERS;
            if constexpr (COPIES && RESIDUAL && FETCHES_FIRST) {
                if (lane == 0 && (!AHEAD || own == 0))
                    fetchChunks(residualMap, stage, ownArrived, row0, column0, t.batch);
                __syncwarp();
            }
            if constexpr (PING_PONG)
                groupSync(2 + group, 256);
            int last = -1, held = 0;
            float total[TF32X3 ? BLOCKS : 1][TF32X3 ? TILE_Q / 2 : 1] = {};
            // Two steps on, TMA has read all of the tile before.
            int const fetchStep = min(begin + 2, end - 1);
            for (int step = begin; step < end; ++step) {
                if constexpr (COPIES && RESIDUAL && !FETCHES_FIRST) {
                    if (step == fetchStep && lane == 0)
                        fetchChunks(residualMap, stage, ownArrived, row0, column0, t.batch);
                    __syncwarp();
                }
                barrierWait(full + s * 8, parity);
                u32 const p = base + s * STAGE_BYTES + (PING_PONG ? 0 : group * ROWS * STEP_BYTES);
                u32 const q = base + s * STAGE_BYTES + P_BYTES;
                wgmmaFence();
#pragma unroll
                for (int k = 0; k < STEP_BYTES / 32; ++k)
#pragma unroll
                    for (int b = 0; b < BLOCKS; ++b)
                        wgmma(d[b], descriptor<STEP_BYTES>(p + b * 64 * STEP_BYTES + k * (P_ALONG_K ? 32 : 2048), 8192),
                              descriptor<STEP_BYTES>(q + k * (Q_ALONG_K ? 32 : 2048), 8192),
                              (TF32X3 ? held > 0 : step > begin) || k > 0);
                wgmmaCommit();
                wgmmaWait<1>();
                if (last >= 0) { // its operands are read
                    if constexpr (MULTICAST > 1) {
                        if (inGroup < MULTICAST)
                            barrierArriveAt(empty + last * 8, inGroup);
                    } else if (inGroup == 0)
                        barrierArrive(empty + last * 8);
                }
                last = s;
                if (++s == STAGES) {
                    s = 0;
                    parity ^= 1;
                }
                if constexpr (TF32X3) {
                    if (++held == KEPT_STEPS || step + 1 == end) {
                        wgmmaWait<0>();
                        held = 0;
#pragma unroll
                        for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                            for (int i = 0; i < TILE_Q / 2; ++i) {
                                keepBehind(d[b][i]); // not before they are there
                                total[b][i] += d[b][i];
                            }
                    }
                }
            }
            if constexpr (PING_PONG)
                if (unit + unitStep < units)
                    groupArrive(2 + (group ^ 1), 256);
            if constexpr (!SWAP && !COPIES && LATE)
                fetchResidual(a, ahead, row0, column0, t.batch, lane);
            wgmmaWait<0>();
            if (last >= 0) {
                if constexpr (MULTICAST > 1) {
                    if (inGroup < MULTICAST)
                        barrierArriveAt(empty + last * 8, inGroup);
                } else if (inGroup == 0)
                    barrierArrive(empty + last * 8);
            }
            if constexpr (TF32X3)
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                    for (int i = 0; i < TILE_Q / 2; ++i)
                        d[b][i] = Sum(total[b][i]);
            done += end - begin;
            if constexpr (FIRST_NORM > 0)
                if (turn == 0)
                    awaitRows();
            // All warps of the group have left the tile before: its biases are read.
            if constexpr ((BIAS || INTEGERS) && !SWAP && !NORM) {
                ends.put(biasAt, inGroup);
                groupSync(4 + group, 128);
            }
            if constexpr (SPLIT > 1) {
                // Each block gets everybody's sums of its columns, 16 bytes a thread, and adds them up.
                constexpr int ALL = GROUPS * 128, UNIT_BYTES = ALL * 16, PART_BYTES = COLUMNS / 8 * UNIT_BYTES;
                if constexpr (OWN_SUMS) {
                    clusterWait(); // all blocks have begun
                } else {
                    if constexpr (GROUPS > 1)
                        groupSync(1, ALL);
                    clusterSync(); // all stages are read
                }
                u32 const sumsAt = (OWN_SUMS ? sums : base) + threadIdx.x * 16;
#pragma unroll
                for (int o = 0; o < SPLIT; ++o) {
                    u32 const to = addressAt(sumsAt + rank * (BLOCKS * PART_BYTES), o);
#pragma unroll
                    for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                        for (int j = 0; j < COLUMNS / 8; ++j) {
                            int const at = (o * (COLUMNS / 8) + j) * 4;
                            storeCluster(to + b * PART_BYTES + j * UNIT_BYTES, d[b][at], d[b][at + 1], d[b][at + 2],
                                         d[b][at + 3]);
                        }
                }
                clusterSync();
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b) {
                    Sum v[COLUMNS / 8 * 4] = {};
#pragma unroll
                    for (int o = 0; o < SPLIT; ++o)
#pragma unroll
                        for (int j = 0; j < COLUMNS / 8; ++j) {
                            Sum x[4];
                            loadShared(x, sumsAt + (o * BLOCKS + b) * PART_BYTES + j * UNIT_BYTES);
#pragma unroll
                            for (int e = 0; e < 4; ++e)
                                v[j * 4 + e] += x[e];
                        }
                    if constexpr (!SWAP && LATE)
                        if (b > 0)
                            fetchResidual(a, ahead, row0 + b * 64, column0, t.batch, lane);
                    if constexpr (FIRST_NORM > 0)
                        normalizeSums(*firstNorm, v, ownColumns[SWAP ? b : 0], rowsAt, row0 + b * 64, column0, lane);
                    if constexpr (SWAP)
                        leaveByColumns(a, v, rowEnds[b].v, row0 + b * 64, column0, t.batch, lane);
                    else
                        leaveByRows(a, v, row0 + b * 64, column0, t.batch, stage, biasAt, ahead,
                                    !LATE && b + 1 < BLOCKS ? row0 + b * 64 + 64 : -1, lane);
                }
            } else if constexpr (COPIES) {
                if constexpr (AHEAD) {
                    // The other part: y of the tile before has left it, as a rule.
                    if (int const next = unit + 2 * unitStep; lane == 0 && next < units) {
                        Tile const n = tileAt(a, next, rank);
                        fetchChunks(residualMap, ownStage + (own + 1) % 2 * WARP_BYTES, ownArrived + (own + 1) % 2 * 8,
                                    n.p + warp % 4 * 16, n.q, n.batch);
                    }
                    __syncwarp();
                    barrierWait(ownArrived + own % 2 * 8, own / 2 & 1);
                } else if constexpr (RESIDUAL)
                    barrierWait(ownArrived, own & 1);
                else if (lane == 0)
                    bulkWaitRead();
                __syncwarp();
                if constexpr (NORM > 0) {
                    normRows(yMap, *norm, d, row0, column0, t.batch, stage, biases, rank, lane);
                } else {
#pragma unroll
                    for (int b = 0; b < BLOCKS; ++b)
                        leaveByCopies(a, yMap, d[b], row0 + b * 64, column0, t.batch,
                                      stage + b * (TILE_Y / CHUNK) * CHUNK_BYTES, biasAt, lane);
                }
            } else {
#pragma unroll
                for (int b = 0; b < BLOCKS; ++b) {
                    if constexpr (!SWAP && LATE)
                        if (b > 0)
                            fetchResidual(a, ahead, row0 + b * 64, column0, t.batch, lane);
                    if constexpr (FIRST_NORM > 0)
                        normalizeSums(*firstNorm, d[b], ownColumns[SWAP ? b : 0], rowsAt, row0 + b * 64, column0, lane);
                    if constexpr (SWAP)
                        leaveByColumns(a, d[b], rowEnds[b].v, row0 + b * 64, column0, t.batch, lane);
                    else
                        leaveByRows(a, d[b], row0 + b * 64, column0, t.batch, stage, biasAt, ahead,
                                    !LATE && b + 1 < BLOCKS ? row0 + b * 64 + 64 : -1, lane);
                }
            }
        }
        if constexpr (COPIES)
            if (lane == 0)
                bulkWaitRead();
        if constexpr (MULTICAST > 1)
            clusterSync();
    }
}

} // namespace tw::cuda::gemm_f16
