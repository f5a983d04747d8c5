// SPDX-License-Identifier: Apache-2.0
// Copies of tiles of i8 to shared memory.
//   int STEP, THREADS
#pragma once

#include "kernels/cuda/common/mma_i8.cuh"
#include "kernels/cuda/gemm/mma_i8_params.h"

namespace tw::cuda::gemm_mma_i8 {

static_assert(STEP == 128, "rows along k are 128 bytes");
// A tile in shared memory lies as in memory, [row][k] or [k][row], in units of 16 bytes that are placed so that the 8
// which a matrix of ldmatrix takes are in different banks: 8 rows of one parity, or of k four pairs, each 4 behind the one
// before.
template <bool ALONG_K, int TILE>
TW_INLINE constexpr int unitAt(int stored, int unit)
{
    if (ALONG_K)
        return stored * STEP + (unit ^ (stored >> 1 & 7)) * 16;
    int const key = TILE >= 128  ? (stored & 1) | (stored >> 2 & 3) << 1
                    : TILE == 64 ? stored >> 2 & 3
                    : TILE == 32 ? stored >> 2 & 1
                                 : 0;
    return stored * TILE + (unit ^ key) * 16;
}
// Aligned; what lies at or behind `end` counts as 0.
TW_INLINE u32 loadWord(i8 const* from, i8 const* end)
{
    if (from + 4 <= end)
        return *reinterpret_cast<u32 const*>(from);
    u32 v = 0;
#pragma unroll 1 // seldom: short code
    for (int i = 0; from + i < end; ++i)
        v |= u32(u8(from[i])) << i * 8;
    return v;
}
// A thread's part of the copies of one operand's tiles, EACH bytes at once. Where rows begin anywhere (VECTOR 1), these
// are of two words, which wait in registers.
template <bool ALONG_K, int TILE, int VECTOR>
struct Loader
{
    static constexpr int WIDTH = ALONG_K ? STEP : TILE, STORED = ALONG_K ? TILE : STEP; // of a tile
    static constexpr int EACH = VECTOR == 1 ? 4 : VECTOR, PARTS = WIDTH / EACH, APART = THREADS / PARTS;
    static constexpr int COUNT = (STORED + APART - 1) / APART, HELD = VECTOR == 1 ? COUNT : 1;
    static_assert(THREADS % PARTS == 0, "a thread stays in its column");
    i8 const *source, *end;
    i64 step, ahead;                 // to this thread's next stored row, and to the next tile
    int stored, other, r, e;         // of the tile's stored rows and columns, how many there are from this thread's on
    u32 low[HELD], high[HELD], mask; // on their way: of which words, and which bytes of both together count
    int first;                       // byte of the first word where the first row begins
    TW_INLINE void begin(i8 const* from, i8 const* behind, i64 ld, int row0, int rows, int k0, int k)
    {
        r = threadIdx.x / PARTS;
        e = threadIdx.x % PARTS * EACH;
        source = ALONG_K ? from + i64(row0 + r) * ld + k0 + e : from + i64(k0 + r) * ld + row0 + e;
        end = behind;
        step = APART * ld;
        ahead = ALONG_K ? STEP : STEP * ld;
        stored = (ALONG_K ? rows - row0 : k - k0) - r;
        other = (ALONG_K ? k - k0 : rows - row0) - e;
    }
    TW_INLINE u32 placeAt(int i) const { return unitAt<ALONG_K, TILE>(r + i * APART, e / 16) + e % 16; }
    // The next tile: copies to shared memory begin, or loads to registers, which put() takes there.
    TW_INLINE void fetch(u32 to)
    {
        if constexpr (VECTOR == 1) {
            first = int(u64(source) & 3);
            mask = other >= 4 ? 0xffffffffu : other > 0 ? (1u << other * 8) - 1 : 0;
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (STORED % APART != 0 && r + i * APART >= STORED)
                break;
            i8 const* const from = source + i * step;
            bool const inside = i * APART < stored && other > 0;
            if constexpr (VECTOR == 1) {
                int const skipped = int(u64(from) & 3);
                low[i] = inside ? loadWord(from - skipped, end) : 0;
                high[i] = inside && skipped + min(other, 4) > 4 ? loadWord(from - skipped + 4, end) : 0;
            } else if constexpr (VECTOR == 4)
                copyAsync4(to + placeAt(i), from, inside);
            else if constexpr (VECTOR == 8)
                copyAsync8(to + placeAt(i), from, inside);
            else
                copyAsync16(to + placeAt(i), from, inside);
        }
        source += ahead;
        (ALONG_K ? other : stored) -= STEP;
    }
    TW_INLINE void put(u32 to) const
    {
        if constexpr (VECTOR == 1)
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                if (STORED % APART != 0 && r + i * APART >= STORED)
                    break;
                int const skipped = first + i * int(step & 3) & 3;
                storeShared(to + placeAt(i), __funnelshift_r(low[i], high[i], skipped * 8) & mask);
            }
    }
};

} // namespace tw::cuda::gemm_mma_i8
