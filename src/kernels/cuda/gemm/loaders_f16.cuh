// SPDX-License-Identifier: Apache-2.0
// Copies of tiles of FP16 to shared memory.
//   int STEP, THREADS
#pragma once

#include "kernels/cuda/common/epilogue_rows_f16.cuh"
#include "kernels/cuda/gemm/mma_f16_params.h"

namespace tw::cuda::gemm_mma_f16 {

using Args = ArgsOf<f16>;
// A tile in shared memory lies as in memory, [row][k] or [k][row]: stored rows of UNITS times 16 bytes, placed so that 8
// rows that follow each other have the same unit in different banks.
template <int UNITS>
TW_INLINE constexpr int unitAt(int row, int unit)
{
    return (row * UNITS + (unit ^ (UNITS >= 8 ? row & 7 : UNITS == 4 ? row >> 1 & 3 : row >> 2 & 1))) * 16;
}
TW_INLINE u32 loadWord(f16 const* from, bool valid)
{
    u32 v;
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.b32 %0, 0;\n@p ld.global.b32 %0, [%1];\n}"
                 : "=&r"(v)
                 : "l"(from), "r"(int(valid)));
    return v;
}
TW_INLINE u32 loadHalf(f16 const* from, bool valid)
{
    u32 v;
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.b32 %0, 0;\n@p ld.global.u16 %0, [%1];\n}"
                 : "=&r"(v)
                 : "l"(from), "r"(int(valid)));
    return v;
}
// A thread's part of the copies of one operand's tiles, EACH elements at once. Where these are pairs that no word holds,
// two loads bring one: the word that has its first number (`odd`: as the high half) and the second number; a pair whose
// second number is outside is a half. Rows of a thread are an even number apart, so all its pairs are alike.
template <bool ALONG_K, int TILE, int VECTOR>
struct Loader
{
    static constexpr int WIDTH = ALONG_K ? STEP : TILE, STORED = ALONG_K ? TILE : STEP; // of a tile
    static constexpr int EACH = VECTOR == 1 ? 2 : VECTOR, PARTS = WIDTH / EACH, APART = THREADS / PARTS;
    static constexpr int COUNT = (STORED + APART - 1) / APART;
    static_assert(THREADS % PARTS == 0 && (VECTOR > 1 || APART % 2 == 0), "a thread stays in its column");
    f16 const* source;
    i64 step, ahead;         // elements to this thread's next stored row, and to the next tile
    int stored, other, r, e; // of the tile's stored rows and columns, how many there are from this thread's on
    u32 words[VECTOR == 1 ? COUNT : 1], halves[VECTOR == 1 ? COUNT : 1], bytes; // on their way; of both, a pair's bytes
    TW_INLINE void begin(f16 const* from, i64 ld, int row0, int rows, int k0, int k)
    {
        r = threadIdx.x / PARTS;
        e = threadIdx.x % PARTS * EACH;
        source = ALONG_K ? from + i64(row0 + r) * ld + k0 + e : from + i64(k0 + r) * ld + row0 + e;
        step = APART * ld;
        ahead = ALONG_K ? STEP : STEP * ld;
        stored = (ALONG_K ? rows - row0 : k - k0) - r;
        other = (ALONG_K ? k - k0 : rows - row0) - e;
    }
    TW_INLINE u32 placeAt(int i) const { return unitAt<WIDTH / 8>(r + i * APART, e / 8) + e % 8 * 2; }
    // The next tile: copies to shared memory begin, or loads to registers, which put() takes there.
    TW_INLINE void fetch(u32 to)
    {
        bool const odd = VECTOR == 1 && (u64(source) & 2) != 0;
        bytes = odd ? 0x5432 : other > 1 ? 0x3210 : 0x7654;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (STORED % APART != 0 && r + i * APART >= STORED)
                break;
            f16 const* const from = source + i * step;
            bool const inside = i * APART < stored;
            if constexpr (VECTOR == 1) {
                words[i] = loadWord(from - (odd ? 1 : 0), inside && other > (odd ? 0 : 1));
                halves[i] = loadHalf(from + (odd ? 1 : 0), inside && (odd ? other > 1 : other == 1));
            } else if constexpr (VECTOR == 2)
                copyAsync4(to + placeAt(i), from, inside && other > 0);
            else if constexpr (VECTOR == 4)
                copyAsync8(to + placeAt(i), from, inside && other > 0);
            else
                copyAsync16(to + placeAt(i), from, inside && other > 0);
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
                storeShared(to + placeAt(i), __byte_perm(words[i], halves[i], bytes));
            }
    }
};

} // namespace tw::cuda::gemm_mma_f16
