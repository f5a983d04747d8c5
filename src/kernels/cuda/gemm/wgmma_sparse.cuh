// SPDX-License-Identifier: Apache-2.0
// Products of weights that follow 2:4 by wgmma. P's rows are filters, Q's are pixels (rows of a): the tensor cores take
// sparse operands on that side only, and sums leave transposed.
//   int TILE_P, TILE_Q, STAGES, MULTICAST, THREADS, BLOCKS_PER_SM, BLOCK_BYTES, ELEMENT_BYTES (of a block)
//   bool IMAGE, REDISTRIBUTE; float activate(float); bool BIAS, RESIDUAL, ACTIVATE_LAST
#pragma once

#include "kernels/cuda/common/epilogue.cuh"
#include "kernels/cuda/common/hopper.cuh"
#include "kernels/cuda/gemm/wgmma_sparse_params.h"

namespace tw::cuda::gemm_sparse {

using Args = ArgsOf<Element>;
// Two groups of 4 warps share a tile: its filters, or its pixels where there are no more than 64 filters.
constexpr int GROUPS = 2, GROUPS_P = TILE_P > 64 ? 2 : 1, GROUPS_Q = GROUPS / GROUPS_P;
constexpr int BLOCKS = TILE_P / 64 / GROUPS_P, COLUMNS = TILE_Q / GROUPS_Q; // of a group: 64 filters each, pixels
constexpr int STEP_K = 64, TILE_BLOCKS = TILE_P / 64;
constexpr u32 Q_BYTES = TILE_Q * 128, COPIED_BYTES = Q_BYTES + TILE_BLOCKS * BLOCK_BYTES,
              STAGE_BYTES = (COPIED_BYTES + 1023) / 1024 * 1024;
// What a group has of y: for each 64 filters a row of 128 swizzled bytes for each pixel.
constexpr u32 PART_BYTES = COLUMNS * 128, GROUP_BYTES = BLOCKS * PART_BYTES;

struct Tile
{
    int p, q; // first filter, first pixel
};
// Tiles run down groups of 16 tiles of filters, so that those in flight share both operands in L2.
TW_INLINE Tile tileAt(Args const& a, int unit, int rank)
{
    constexpr int HIGH = 16 / MULTICAST;
    int const group = unit / (HIGH * a.tilesQ), first = group * HIGH, rest = unit - group * HIGH * a.tilesQ;
    int const high = min(HIGH, a.tilesP - first);
    return {((first + rest % high) * MULTICAST + rank) * TILE_P, rest / high * TILE_Q};
}

// What the copying thread walks along. Of a pair each block brings half of the pixels to both.
struct Cursor
{
    int step, c, q, r, s, w, h, n;
    TW_INLINE void begin(Args const& a, Tile const& t, int rank)
    {
        step = c = r = s = 0;
        q = t.q + rank * (TILE_Q / MULTICAST);
        if constexpr (IMAGE) {
            int const row = q / a.outW;
            n = row / a.outH;
            w = (q - row * a.outW) * a.strideW - a.padW;
            h = (row - n * a.outH) * a.strideH - a.padH;
        }
    }
    TW_INLINE void next(Args const& a)
    {
        ++step;
        c += STEP_K;
        if constexpr (IMAGE)
            if (c == a.stepsC * STEP_K) {
                c = 0;
                if (++s == a.filterW) {
                    s = 0;
                    ++r;
                }
            }
    }
};
TW_INLINE void loadWeights(Args const& a, Tile const& t, int step, u32 to, u32 bar)
{
#pragma unroll
    for (int b = 0; b < TILE_BLOCKS; ++b) {
        int const block = min(t.p / 64 + b, a.blocks - 1); // filters behind the last one are not stored
        copyBytes(to + Q_BYTES + b * BLOCK_BYTES,
                  static_cast<u8 const*>(a.weights) + (i64(block) * a.steps + step) * BLOCK_BYTES, BLOCK_BYTES, bar);
    }
}
TW_INLINE void loadPixels(TensorMap const* map, Args const& a, Cursor const& at, u32 to, u32 bar, int rank)
{
    constexpr u16 ALL = (1 << MULTICAST) - 1;
    u32 const part = to + rank * (Q_BYTES / MULTICAST);
    if constexpr (IMAGE) {
        u16 const tapW = u16(at.s * a.dilationW), tapH = u16(at.r * a.dilationH);
        if constexpr (MULTICAST > 1)
            copyPixelsTo(part, map, bar, at.c, at.w, at.h, at.n, tapW, tapH, ALL);
        else
            copyPixels(part, map, bar, at.c, at.w, at.h, at.n, tapW, tapH);
    } else if constexpr (MULTICAST > 1) {
        copyTileTo(part, map, bar, at.c, at.q, 0, ALL);
    } else {
        copyTile(part, map, bar, at.c, at.q, 0);
    }
}

// y of 16 filters of a warp and all pixels of its group, in place of the residual. `unit0`: the first of the two units of
// 8 filters that the warp has in a row.
TW_INLINE void leave(float (&v)[COLUMNS / 2], u32 part, float const (&bias)[2], int unit0, int lane)
{
    // Four 8 x 8 blocks at once: filters 0 and 8 of 8 pixels, then of the next 8; each lane names a pixel of one.
    int const inBlock = lane % 8, pixel0 = lane / 16 * 8 + inBlock;
    u32 const lineAt = part + pixel0 * 128 + ((unit0 + lane / 8 % 2) ^ inBlock) * 16;
#pragma unroll
    for (int j = 0; j + 1 < COLUMNS / 8; j += 2) {
        u32 const at = lineAt + j * 1024;
        u32 add[4], out[4];
        if constexpr (RESIDUAL)
            loadMatrix4Transposed(add, at);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int const h = i % 2, from = (j + i / 2) * 4 + h * 2;
            float x0 = v[from] + bias[h], x1 = v[from + 1] + bias[h];
            if constexpr (!ACTIVATE_LAST) {
                x0 = activate(x0);
                x1 = activate(x1);
            }
            if constexpr (RESIDUAL) {
                x0 += lowHalf(add[i]);
                x1 += highHalf(add[i]);
            }
            if constexpr (ACTIVATE_LAST) {
                x0 = activate(x0);
                x1 = activate(x1);
            }
            out[i] = packHalves(x0, x1);
        }
        storeMatrix4Transposed(at, out);
    }
}

// TW_PARAMETERS, TW_RESIDUAL: the residual's map, where there is one.
TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM)
    gemmSparse(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapY,
               TW_PARAMETERS const __grid_constant__ Args a)
{
    static_assert(COLUMNS % 16 == 0, "pairs of 8 pixels");
    TensorMap const* const residualMap = TW_RESIDUAL;
    extern __shared__ u8 raw[];
    u32 const base = (sharedAddress(raw) + 1023) & ~1023u, staging = base + STAGES * STAGE_BYTES;
    u32 const full = staging + GROUPS * GROUP_BYTES, empty = full + STAGES * 8,
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
    releaseDependents();

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
    u32 const stage = staging + group * GROUP_BYTES;
    waitForPrevious(); // y and residual belong to it
    int s = 0;
    u32 parity = 0, residualParity = 0;
    for (int unit = firstUnit; unit < units; unit += unitStep) {
        Tile const t = tileAt(a, unit, rank);
        int const filter0 = t.p + groupP * 64, pixel0 = t.q + groupQ;
        float bias[BLOCKS][2] = {};
        if constexpr (BIAS)
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    int const n = filter0 + b * 64 + warp % 4 * 16 + lane / 4 + h * 8;
                    bias[b][h] = n < a.n ? a.bias[n] : 0;
                }
        float d[BLOCKS][COLUMNS / 2];
        int last = -1;
        int const fetchStep = min(2, a.steps - 1); // by then TMA has read all of the tile before
        for (int step = 0; step < a.steps; ++step) {
            if constexpr (RESIDUAL)
                if (step == fetchStep && inGroup == 0) {
                    bulkWaitRead();
                    barrierExpect(arrived + group * 8, GROUP_BYTES);
#pragma unroll
                    for (int b = 0; b < BLOCKS; ++b)
                        copyTile(stage + b * PART_BYTES, residualMap, arrived + group * 8, filter0 + b * 64, pixel0, 0);
                }
            __syncwarp();
            barrierWait(full + s * 8, parity);
            u32 const q = base + s * STAGE_BYTES + groupQ * 128,
                      p = base + s * STAGE_BYTES + Q_BYTES + groupP * BLOCK_BYTES;
            u32 places[BLOCKS];
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
                places[b] = loadShared(p + b * BLOCK_BYTES + ELEMENT_BYTES + inGroup * 4);
            wgmmaFence();
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
                wgmmaSparse<0>(d[b], blockDescriptor(p + b * BLOCK_BYTES), descriptor(q, 8192), places[b], step > 0);
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
                wgmmaSparse<1>(d[b], blockDescriptor(p + b * BLOCK_BYTES + 2048), descriptor(q + 64, 8192), places[b],
                               1);
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
        }
        wgmmaWait<0>();
        if constexpr (MULTICAST > 1) {
            if (inGroup < MULTICAST)
                barrierArriveAt(empty + last * 8, inGroup);
        } else if (inGroup == 0)
            barrierArrive(empty + last * 8);
        if constexpr (RESIDUAL) {
            barrierWait(arrived + group * 8, residualParity);
            residualParity ^= 1;
        } else {
            if (inGroup == 0)
                bulkWaitRead(); // y of the tile before has left
            groupSync(4 + group, 128);
        }
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b)
            leave(d[b], stage + b * PART_BYTES, bias[b], warp % 4 * 2, lane);
        sharedFence();
        groupSync(4 + group, 128);
        if (inGroup == 0) {
#pragma unroll
            for (int b = 0; b < BLOCKS; ++b)
                storeTile(&mapY, stage + b * PART_BYTES, filter0 + b * 64, pixel0, 0);
            bulkCommit();
        }
    }
    if (inGroup == 0)
        bulkWaitRead();
    if constexpr (MULTICAST > 1)
        clusterSync();
}

} // namespace tw::cuda::gemm_sparse
