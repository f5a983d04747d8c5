// SPDX-License-Identifier: Apache-2.0
// Factors that are matrices. After the copies of their type (copies_*.cuh), which have Args, Factor, Loader and begin().
//   int TILE_M, TILE_N, SPLIT, STEP, VECTOR_A, VECTOR_B; bool A_ALONG_K, B_ALONG_K, CLUSTERS
#pragma once

#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/mma/main_loop.cuh"

namespace tw::cuda::product {

struct Matrices
{
    static constexpr int AT_ONCE = STAGES; // of the first steps' copies
    static constexpr int A_BYTES = TILE_M * STEP * sizeof(Factor),
                         STAGE_BYTES = (TILE_M + TILE_N) * STEP * sizeof(Factor);
    int rank = 0, steps; // of the blocks that share k, this one, and what it has of it
    Tile tile;
    Loader<A_ALONG_K, TILE_M, VECTOR_A> a;
    Loader<B_ALONG_K, TILE_N, VECTOR_B> b;
    TW_INLINE explicit Matrices(Args const& args)
    {
        if constexpr (CLUSTERS)
            rank = clusterRank();
        else if constexpr (SPLIT > 1)
            rank = blockIdx.x % SPLIT;
        tile = tileAt(args, blockIdx.x / SPLIT);
        int const all = (int(args.k) + STEP - 1) / STEP, first = all * rank / SPLIT;
        steps = all * (rank + 1) / SPLIT - first;
        begin(args, tile, first * STEP, a, b);
    }
    TW_INLINE void fetchA(int, u32 to) { a.fetch(to); }
    TW_INLINE void fetchB(int, u32 to) { b.fetch(to); }
    TW_INLINE void fetch(int, u32 to)
    {
        a.fetch(to);
        b.fetch(to + A_BYTES);
    }
    TW_INLINE void putA(u32 to) const { a.put(to); }
    TW_INLINE void putB(u32 to) const { b.put(to); }
};

} // namespace tw::cuda::product
