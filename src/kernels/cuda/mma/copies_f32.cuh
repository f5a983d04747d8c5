// SPDX-License-Identifier: Apache-2.0
// Copies of matrices of FP32.
//   bool SKEWED
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "kernels/cuda/gemm/mma_params.h"
#include "kernels/cuda/mma/copies.cuh"

namespace tw::cuda::product {

using Args = gemm_f32::Params;
using Factor = float;

// Along k: rows of 64 or 128 bytes, units of 16 bytes placed so that 8 rows that follow each other lie in different banks;
// or [k][row], where SKEWED so that 8 rows of 4 steps of k that follow each other do.
template <bool ALONG_K, int TILE>
struct Place
{
    // In floats, which the compiler takes constants out of.
    static TW_INLINE constexpr int unit(int row, int u)
    {
        return row * STEP + (u ^ (STEP == 16 ? row >> 1 & 3 : row & 7)) * 4;
    }
    static TW_INLINE constexpr int number(int stored, int e)
    {
        if constexpr (ALONG_K)
            return unit(stored, e / 4) + e % 4;
        else
            return stored * TILE + (SKEWED ? e ^ (stored & 3) << 3 : e);
    }
    static TW_INLINE constexpr int at(int stored, int e) { return number(stored, e) * 4; }
};
template <bool ALONG_K, int TILE, int VECTOR>
struct Loader
{
    Copies<float, Place<ALONG_K, TILE>, ALONG_K, TILE, VECTOR> tiles;
    TW_INLINE void fetch(u32 to)
    {
        tiles.copy(to);
        tiles.next();
    }
    TW_INLINE void put(u32) const {}
};
TW_INLINE Tile tileAt(Args const& a, int block)
{
    idx const rest = divide(block, a.tilesN), batch = divide(rest, a.tilesM);
    return {int(batch), int(rest - batch * idx(a.tilesM.d)) * TILE_M, int(block - rest * idx(a.tilesN.d)) * TILE_N};
}
template <class A, class B>
TW_INLINE void begin(Args const& args, Tile const& t, int k0, A& a, B& b)
{
    off at[2];
    locate<8>(args.batch, t.batch, at);
    a.tiles.begin(args.a + at[0], args.lda, t.m0, int(args.m), k0, int(args.k));
    b.tiles.begin(args.b + at[1], args.ldb, t.n0, int(args.n), k0, int(args.k));
}

} // namespace tw::cuda::product
