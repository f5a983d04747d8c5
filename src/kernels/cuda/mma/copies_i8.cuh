// SPDX-License-Identifier: Apache-2.0
// Copies of matrices of i8.
#pragma once

#include "kernels/cuda/common/mma_i8.cuh"
#include "kernels/cuda/gemm/mma_params.h"
#include "kernels/cuda/mma/copies.cuh"

namespace tw::cuda::product {

using Args = gemm_mma::IntegerArgs;
using Factor = i8;

static_assert(STEP == 128, "rows along k are 128 bytes");
// Units of 16 bytes that are placed so that the 8 which a matrix of ldmatrix takes are in different banks: 8 rows of one
// parity, or of k four pairs, each 4 behind the one before.
template <bool ALONG_K, int TILE>
struct Place
{
    static TW_INLINE constexpr int unit(int stored, int u)
    {
        if (ALONG_K)
            return stored * STEP + (u ^ (stored >> 1 & 7)) * 16;
        int const key = TILE >= 128  ? (stored & 1) | (stored >> 2 & 3) << 1
                        : TILE == 64 ? stored >> 2 & 3
                        : TILE == 32 ? stored >> 2 & 1
                                     : 0;
        return stored * TILE + (u ^ key) * 16;
    }
    static TW_INLINE constexpr int at(int stored, int e) { return unit(stored, e / 16) + e % 16; }
};
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
// Where rows begin anywhere (VECTOR 1), four bytes are of two words, which wait in registers.
template <bool ALONG_K, int TILE, int VECTOR>
struct Loader
{
    using Tiles = Copies<i8, Place<ALONG_K, TILE>, ALONG_K, TILE, VECTOR == 1 ? 4 : VECTOR>;
    static constexpr int HELD = VECTOR == 1 ? Tiles::COUNT : 1;
    Tiles tiles;
    i8 const* end;
    u32 low[HELD], high[HELD], mask; // on their way: of which words, and which bytes of both together count
    int first;                       // byte of the first word where the first row begins
    // The next tile: copies to shared memory begin, or loads to registers, which put() takes there.
    TW_INLINE void fetch(u32 to)
    {
        if constexpr (VECTOR == 1) {
            first = int(u64(tiles.source) & 3);
            mask = tiles.other >= 4 ? 0xffffffffu : tiles.other > 0 ? (1u << tiles.other * 8) - 1 : 0;
            tiles.each([&](int i, int, i8 const* from, bool known) {
                bool const inside = known && tiles.other > 0;
                int const skipped = int(u64(from) & 3);
                low[i] = inside ? loadWord(from - skipped, end) : 0;
                high[i] = inside && skipped + min(tiles.other, 4) > 4 ? loadWord(from - skipped + 4, end) : 0;
            });
        } else {
            tiles.copy(to);
        }
        tiles.next();
    }
    TW_INLINE void put(u32 to) const
    {
        if constexpr (VECTOR == 1)
            tiles.each([&](int i, int place, i8 const*, bool) {
                int const skipped = first + i * int(tiles.step & 3) & 3;
                storeShared(to + place, __funnelshift_r(low[i], high[i], skipped * 8) & mask);
            });
    }
};
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
template <class A, class B>
TW_INLINE void begin(Args const& args, Tile const& t, int k0, A& a, B& b)
{
    i64 at[2];
    locateBatch(args, t.batch, at);
    a.end = args.a + args.endA;
    b.end = args.b + args.endB;
    a.tiles.begin(args.a + at[0], args.lda, t.m0, args.m, k0, args.k);
    b.tiles.begin(args.b + at[1], args.ldb, t.n0, args.n, k0, args.k);
}

} // namespace tw::cuda::product
