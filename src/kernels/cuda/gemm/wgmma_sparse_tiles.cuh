// SPDX-License-Identifier: Apache-2.0
// Tiles of products of weights that follow 2:4 by wgmma, and copies of operands to shared memory.
//   int TILE_P, TILE_Q, STAGES, MULTICAST, THREADS, BLOCKS_PER_SM, STEP_K, BLOCK_BYTES, ELEMENT_BYTES (of a block)
//   type Sum: float, or i32 of products of i8
//   bool AHEAD (products of a step go on while those of the next are begun), INTEGERS, IMAGE, REDISTRIBUTE; float epilogue(float v, float r); bool BIAS, RESIDUAL
#pragma once

#include "kernels/cuda/common/epilogue.cuh"
#include "kernels/cuda/common/hopper.cuh"
#include "kernels/cuda/gemm/wgmma_params.h"

namespace tw::cuda::gemm_sparse {

using Args = ArgsOf<Element>;
// Two groups of 4 warps share a tile: its filters, or its pixels where there are no more than 64 filters.
constexpr int GROUPS = 2, GROUPS_P = TILE_P > 64 ? 2 : 1, GROUPS_Q = GROUPS / GROUPS_P;
constexpr int BLOCKS = TILE_P / 64 / GROUPS_P,
              COLUMNS = TILE_Q / GROUPS_Q; // of a group: 64 filters each, pixels
constexpr int TILE_BLOCKS = TILE_P / 64;
constexpr u32 Q_BYTES = TILE_Q * 128, COPIED_BYTES = Q_BYTES + TILE_BLOCKS * BLOCK_BYTES,
              STAGE_BYTES = (COPIED_BYTES + 1023) / 1024 * 1024;
// y on its way, in parts of 64 filters (i8: 128): a row of 128 swizzled bytes for each pixel. Groups have parts of
// their own, or (SHARED) halves of one.
constexpr int PART_FILTERS = INTEGERS ? 128 : 64,
              BLOCK_UNITS = INTEGERS ? 4 : 8; // units of 16 bytes of 64 filters
constexpr bool SHARED = GROUPS_P * BLOCKS * 64 < GROUPS_P * PART_FILTERS;
constexpr int PARTS = SHARED ? 1 : BLOCKS * 64 / PART_FILTERS; // of a group
constexpr u32 PART_BYTES = COLUMNS * 128, GROUP_BYTES = PARTS * PART_BYTES;
static_assert(!SHARED || GROUPS_P == 2, "tiles of whole parts");

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
        int const block = min(t.p / 64 + b,
                              a.blocks - 1); // filters behind the last one are not stored
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

} // namespace tw::cuda::gemm_sparse
