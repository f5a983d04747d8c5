// SPDX-License-Identifier: Apache-2.0
// Products of weights that follow 2:4 by wgmma, of FP16 or i8. P's rows are filters, Q's are pixels (rows of a): the
// tensor cores take sparse operands on that side only, and sums leave transposed. After leave() of
// wgmma_sparse_halves.cuh or wgmma_sparse_integers.cuh.
#pragma once

#include "kernels/cuda/gemm/wgmma_sparse_tiles.cuh"

namespace tw::cuda::gemm_sparse {

// Sparse wgmma reads its places when it comes to be executed, which the assembler does not know: it would give their
// registers to others. So they are used once more, by an instruction that does nothing, behind the wait for those
// products: no places are 0.
TW_INLINE void keepUntilHere(u32 at, u32 places)
{
    asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %1, 0;\n@p st.shared.b32 [%0], %1;\n}" ::"r"(at), "r"(places)
                 : "memory");
}
// The block that has brought a stage, or both of a pair, may overwrite it.
TW_INLINE void releaseStage(u32 empty, int inGroup)
{
    if constexpr (MULTICAST > 1) {
        if (inGroup < MULTICAST)
            barrierArriveAt(empty, inGroup);
    } else if (inGroup == 0)
        barrierArrive(empty);
}

// TW_PARAMETERS, TW_RESIDUAL: the residual's map, where there is one.
TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM)
    gemmSparse(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapY,
               TW_PARAMETERS const __grid_constant__ Args a)
{
    TensorMap const* const residualMap = TW_RESIDUAL;
    extern __shared__ u8 raw[];
    u32 const base = (sharedAddress(raw) + 1023) & ~1023u, staging = base + STAGES * STAGE_BYTES;
    u32 const full = staging + (SHARED ? 1 : GROUPS) * GROUP_BYTES, empty = full + STAGES * 8,
              arrived = empty + STAGES * 8; // residual of each group
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const rank = MULTICAST > 1 ? clusterRank() : 0;
    int const units = a.tilesP * a.tilesQ, firstUnit = blockIdx.x / MULTICAST, unitStep = gridDim.x / MULTICAST;
    if (threadIdx.x == 0) {
#pragma unroll
        for (int s = 0; s < STAGES; ++s) {
            barrierInit(full + s * 8, 1);
            barrierInit(empty + s * 8, GROUPS * MULTICAST);
        }
        if constexpr (RESIDUAL)
#pragma unroll
            for (int g = 0; g < GROUPS; ++g)
                barrierInit(arrived + g * 8, 1);
        barrierInitFence();
    }
    if (warp == GROUPS * 4 && lane == 0)
        prefetchMap(&mapQ);
    if constexpr (MULTICAST > 1)
        clusterSync();
    else
        __syncthreads();

    if (warp >= GROUPS * 4) {
        if constexpr (REDISTRIBUTE)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(56));
        if (warp == GROUPS * 4 && lane == 0) {
            int s = 0;
            u32 parity = 1;
            // Weights belong to nobody else: they come before the kernel in front has ended.
            int early = 0;
            if (firstUnit < units) {
                Tile const t = tileAt(a, firstUnit, rank);
                for (; early < min(STAGES, a.steps); ++early) {
                    barrierExpect(full + early * 8, COPIED_BYTES);
                    loadWeights(a, t, early, base + early * STAGE_BYTES, full + early * 8);
                }
            }
            waitForPrevious();
            for (int unit = firstUnit; unit < units; unit += unitStep) {
                Tile const t = tileAt(a, unit, rank);
                Cursor at;
                at.begin(a, t, rank);
                for (; at.step < a.steps; at.next(a)) {
                    u32 const to = base + s * STAGE_BYTES, bar = full + s * 8;
                    if (early > 0) {
                        --early;
                    } else {
                        barrierWait(empty + s * 8, parity);
                        barrierExpect(bar, COPIED_BYTES);
                        loadWeights(a, t, at.step, to, bar);
                    }
                    loadPixels(&mapQ, a, at, to, bar, rank);
                    if (++s == STAGES) {
                        s = 0;
                        parity ^= 1;
                    }
                }
            }
        }
        __syncwarp();
        // The other of the pair arrives at this block's barriers until here.
        if constexpr (MULTICAST > 1)
            clusterSync();
        return;
    }
    if constexpr (REDISTRIBUTE)
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(224));
    int const group = warp / 4, inGroup = threadIdx.x % 128;
    int const groupP = GROUPS_P > 1 ? group * BLOCKS : 0, groupQ = GROUPS_Q > 1 ? group * COLUMNS : 0;
    u32 const stage = staging + (SHARED ? 0 : group * GROUP_BYTES);
    u32 const residualArrived = arrived + (SHARED ? 0 : group * 8);
    // Who has a part together, and who copies it.
    int const partners = SHARED ? 1 : 4 + group, partnerThreads = SHARED ? GROUPS * 128 : 128;
    bool const copies = SHARED ? threadIdx.x == 0 : inGroup == 0;
    int const partFilter0 = SHARED ? 0 : groupP * 64; // of the tile
    waitForPrevious();                                // y and residual belong to it
    releaseDependents();
    int s = 0;
    u32 parity = 0, residualParity = 0;
    for (int unit = firstUnit; unit < units; unit += unitStep) {
        Tile const t = tileAt(a, unit, rank);
        int const filter0 = t.p + groupP * 64, pixel0 = t.q + groupQ;
        FilterEnds<INTEGERS> ends[BLOCKS];
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b)
            ends[b].take(a, filter0 + b * 64 + warp % 4 * 16, lane);
        Sum d[BLOCKS][COLUMNS / 2];
        int last = -1;
        int const fetchStep = min(2, a.steps - 1); // by then TMA has read all of the tile before
        // `held`: places of the step before, whose products go on.
        auto multiply = [&](int step, u32(&places)[BLOCKS][2], u32 const(&held)[BLOCKS][2]) {
            if constexpr (RESIDUAL)
                if (step == fetchStep && copies) {
                    bulkWaitRead();
                    barrierExpect(residualArrived, GROUP_BYTES);
#pragma unroll
                    for (int i = 0; i < PARTS; ++i)
                        copyTile(stage + i * PART_BYTES, residualMap, residualArrived,
                                 t.p + partFilter0 + i * PART_FILTERS, pixel0, 0);
                }
            __syncwarp();
            barrierWait(full + s * 8, parity);
            u32 const q = base + s * STAGE_BYTES + groupQ * 128,
                      p = base + s * STAGE_BYTES + Q_BYTES + groupP * BLOCK_BYTES;
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b) {
                u32 const at = p + b * BLOCK_BYTES + ELEMENT_BYTES + inGroup * 4;
                places[b][0] = loadShared(at);
                if constexpr (INTEGERS) // each instruction has its own
                    places[b][1] = loadShared(at + 512);
            }
            wgmmaFence();
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
                wgmmaSparse<0>(d[b], blockDescriptor(p + b * BLOCK_BYTES), descriptor(q, 8192), places[b][0], step > 0);
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
                wgmmaSparse<INTEGERS ? 0 : 1>(d[b], blockDescriptor(p + b * BLOCK_BYTES + 2048),
                                              descriptor(q + 64, 8192), places[b][INTEGERS], 1);
            wgmmaCommit();
            if constexpr (AHEAD)
                wgmmaWait<1>();
            else
                wgmmaWait<0>();
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                for (int i = 0; i <= INTEGERS; ++i)
                    keepUntilHere(stage, AHEAD ? held[b][i] : places[b][i]);
            if constexpr (AHEAD) {
                if (last >= 0) // its operands are read
                    releaseStage(empty + last * 8, inGroup);
                last = s;
            } else {
                releaseStage(empty + s * 8, inGroup);
            }
            if (++s == STAGES) {
                s = 0;
                parity ^= 1;
            }
        };
        u32 even[BLOCKS][2], odd[BLOCKS][2];
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                even[b][i] = odd[b][i] = ~0u;
        // Registers of two steps, none of which is moved to another one.
        for (int step = 0; step < a.steps; ++step) {
            multiply(step, even, odd);
            if constexpr (AHEAD)
                if (++step < a.steps)
                    multiply(step, odd, even);
        }
        if constexpr (AHEAD) {
            wgmmaWait<0>();
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                for (int i = 0; i <= INTEGERS; ++i) {
                    keepUntilHere(stage, even[b][i]);
                    keepUntilHere(stage, odd[b][i]);
                }
            releaseStage(empty + last * 8, inGroup);
        }
        if constexpr (RESIDUAL) {
            barrierWait(residualArrived, residualParity);
            residualParity ^= 1;
        } else {
            if (copies)
                bulkWaitRead(); // y of the tile before has left
            groupSync(partners, partnerThreads);
        }
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
            int const unit = (SHARED ? group * BLOCK_UNITS : 0) + b * BLOCK_UNITS + warp % 4 * (BLOCK_UNITS / 4);
            leave(a, d[b], stage + unit / 8 * PART_BYTES, ends[b], unit % 8, lane);
        }
        sharedFence();
        groupSync(partners, partnerThreads);
        if (copies) {
#pragma unroll
            for (int i = 0; i < PARTS; ++i)
                storeTile(&mapY, stage + i * PART_BYTES, t.p + partFilter0 + i * PART_FILTERS, pixel0, 0);
            bulkCommit();
        }
    }
    if (copies)
        bulkWaitRead();
    if constexpr (MULTICAST > 1)
        clusterSync();
}

} // namespace tw::cuda::gemm_sparse
