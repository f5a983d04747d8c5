// SPDX-License-Identifier: Apache-2.0
// Copies of matrices of FP16.
#pragma once

#include "kernels/cuda/common/epilogue.cuh"
#include "kernels/cuda/gemm/mma_params.h"
#include "kernels/cuda/mma/copies.cuh"

namespace tw::cuda::product {

using Args = gemm_mma::ArgsOf<Narrow>;
using Factor = Narrow;

// Stored rows of UNITS times 16 bytes, placed so that 8 rows that follow each other have the same unit in different
// banks.
template <bool ALONG_K, int TILE>
struct Place
{
    static constexpr int UNITS = (ALONG_K ? STEP : TILE) / 8;
    static TW_INLINE constexpr int unit(int row, int u)
    {
        return (row * UNITS + (u ^ (UNITS >= 8 ? row & 7 : UNITS == 4 ? row >> 1 & 3 : row >> 2 & 1))) * 16;
    }
    static TW_INLINE constexpr int at(int row, int e) { return unit(row, e / 8) + e % 8 * 2; }
};
TW_INLINE u32 loadWord(Narrow const* from, bool valid)
{
    u32 v;
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.b32 %0, 0;\n@p ld.global.b32 %0, [%1];\n}"
                 : "=&r"(v)
                 : "l"(from), "r"(int(valid)));
    return v;
}
TW_INLINE u32 loadHalf(Narrow const* from, bool valid)
{
    u32 v;
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\nmov.b32 %0, 0;\n@p ld.global.u16 %0, [%1];\n}"
                 : "=&r"(v)
                 : "l"(from), "r"(int(valid)));
    return v;
}
// Pairs that no word holds (VECTOR 1): two loads bring one, the word that has its first number (`odd`: as the high half)
// and the second number; a pair whose second number is outside is a half. Rows of a thread are an even number apart, so
// all its pairs are alike.
template <bool ALONG_K, int TILE, int VECTOR>
struct Loader
{
    using Tiles = Copies<Narrow, Place<ALONG_K, TILE>, ALONG_K, TILE, VECTOR == 1 ? 2 : VECTOR>;
    static constexpr int HELD = VECTOR == 1 ? Tiles::COUNT : 1;
    static_assert(VECTOR > 1 || Tiles::APART % 2 == 0);
    Tiles tiles;
    u32 words[HELD], halves[HELD], bytes; // on their way; of both, a pair's bytes
    // The next tile: copies to shared memory begin, or loads to registers, which put() takes there.
    TW_INLINE void fetch(u32 to)
    {
        if constexpr (VECTOR == 1) {
            bool const odd = (u64(tiles.source) & 2) != 0;
            bytes = odd ? 0x5432 : tiles.other > 1 ? 0x3210 : 0x7654;
            tiles.each([&](int i, int, Narrow const* from, bool inside) {
                words[i] = loadWord(from - (odd ? 1 : 0), inside && tiles.other > (odd ? 0 : 1));
                halves[i] = loadHalf(from + (odd ? 1 : 0), inside && (odd ? tiles.other > 1 : tiles.other == 1));
            });
        } else {
            tiles.copy(to);
        }
        tiles.next();
    }
    TW_INLINE void put(u32 to) const
    {
        if constexpr (VECTOR == 1)
            tiles.each([&](int i, int place, Narrow const*, bool) {
                storeShared(to + place, __byte_perm(words[i], halves[i], bytes));
            });
    }
};
template <class A, class B>
TW_INLINE void begin(Args const& args, Tile const& t, int k0, A& a, B& b)
{
    a.tiles.begin(args.a + t.batch * args.batchA, args.lda, t.m0, args.m, k0, args.k);
    b.tiles.begin(args.b + t.batch * args.batchB, args.ldb, t.n0, args.n, k0, args.k);
}

} // namespace tw::cuda::product
