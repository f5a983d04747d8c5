// SPDX-License-Identifier: Apache-2.0
// V neighbouring columns in the registers of Y threads, P elements of each column in a thread; a block has X such packs.
//   LEAST: elements that every column has
#pragma once

#include "families/reduction/reduction_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::reduction {

template <int WIDTH, int PACKS, int X, int Y, int LEAST = 0>
struct Column
{
    static constexpr int V = WIDTH, P = PACKS, SETS = V; // SETS: of a pack
    static constexpr bool EDGES = false, IS_SHARED = Y > 1;
    i64 begin, own, inner; // begin: of the first column; own: of the thread's first pack
    int row, n;
    bool stores;

    TW_INLINE Column(Columns const& p, int length) : row(threadIdx.x / X), n(length)
    {
        // Threads after the last pack do as the last one does, and store nothing.
        idx const wanted = blockIdx.x * idx(X) + threadIdx.x % X, pack = min(wanted, idx(p.packs) - 1),
                  o = divide(pack, p.packsOfRow);
        stores = wanted == pack;
        inner = i64(p.packsOfRow.d) * V;
        begin = i64(o) * n * inner + i64(pack - o * idx(p.packsOfRow.d)) * V;
        own = begin + row * inner;
    }
    // Of the thread: row, row + Y, ...
    TW_INLINE bool has(int i) const { return (i + 1) * Y <= LEAST || row + i * Y < n; }
    // Of pack i from the tensor's begin.
    TW_INLINE i64 at(int i) const { return own + i * Y * inner; }
    // What the threads of a column have, joined. Each SLOT of a kernel has memory of its own.
    template <int SLOT, class A, class F>
    TW_INLINE void join(A (&v)[V], A, F f) const
    {
        constexpr int GROUP = X < 32 ? 32 : X, GROUPS = X * Y / GROUP;
#pragma unroll
        for (int d = X; d < 32; d *= 2)
#pragma unroll
            for (int k = 0; k < V; ++k)
                v[k] = f(v[k], __shfl_xor_sync(~0u, v[k], d));
        if constexpr (GROUPS > 1) {
            __shared__ A part[GROUPS][V][X];
            int const cx = threadIdx.x % X;
            if (X >= 32 || threadIdx.x % 32 < X)
#pragma unroll
                for (int k = 0; k < V; ++k)
                    part[threadIdx.x / GROUP][k][cx] = v[k];
            __syncthreads();
            if (GROUPS >= 8) { // else every thread would read as much as it has
                A* const all = &part[0][0][0];
                for (int c = threadIdx.x; c < V * X; c += X * Y) {
                    A joined = all[c];
#pragma unroll
                    for (int r = 1; r < GROUPS; ++r)
                        joined = f(joined, all[r * V * X + c]);
                    all[c] = joined;
                }
                __syncthreads();
            }
#pragma unroll
            for (int k = 0; k < V; ++k)
                v[k] = part[0][k][cx];
            if (GROUPS < 8)
#pragma unroll
                for (int r = 1; r < GROUPS; ++r)
#pragma unroll
                    for (int k = 0; k < V; ++k)
                        v[k] = f(v[k], part[r][k][cx]);
        }
    }
};

} // namespace tw::ops::reduction
