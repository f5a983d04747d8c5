// SPDX-License-Identifier: Apache-2.0
// A row in the registers of LANES threads, a power of two up to 32 or the whole block: V neighbours in each of P packs of a
// thread. EDGES: rows begin at any element; what lies before the first whole pack and after the last one, fewer than V
// elements each, is one more for some of the threads.
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::reduction {

template <int WIDTH, int PACKS, int LANES, int THREADS, bool WITH_EDGES = false>
struct Row
{
    static constexpr int V = WIDTH, P = PACKS, SETS = 1; // SETS: of a pack
    static constexpr bool EDGES = WITH_EDGES;
    idx number, lane, packs, head = 0, tail = 0;
    i64 own; // of the thread's first pack from the row's begin
    bool stores = true;

    // Of every block.
    TW_INLINE explicit Row(idx n) : number(blockIdx.x) { set(n); }
    // Threads after the last row do as the last one does, for all of a warp exchange, and store nothing.
    TW_INLINE Row(idx rows, idx n)
    {
        idx const wanted = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
        number = min(wanted, rows - 1);
        stores = wanted == number;
        set(n);
    }
    TW_INLINE void set(idx n)
    {
        lane = threadIdx.x % LANES;
        if (EDGES)
            head = min(n, idx(-(i64(number) * i64(n)) & (V - 1)));
        packs = (n - head) / V;
        own = i64(head) + lane * V;
        if (EDGES)
            tail = n - head - packs * V;
    }
    TW_INLINE bool has(int i) const { return i * LANES + lane < packs; }
    // Of pack i from the row's begin.
    TW_INLINE i64 at(int i) const { return own + i * LANES * V; }
    // Of the element before the packs (0) and behind them (1).
    TW_INLINE bool hasEdge(int i) const { return EDGES && lane < (i ? tail : head); }
    TW_INLINE idx edge(int i) const { return (i ? head + packs * V : 0) + lane; }
    // What the threads of the row have, joined.
    template <int, class F>
    TW_INLINE void join(float (&v)[1], float identity, F f) const
    {
        if constexpr (LANES <= 32) {
#pragma unroll
            for (int d = LANES / 2; d > 0; d /= 2)
                v[0] = f(v[0], __shfl_xor_sync(~0u, v[0], d));
        } else {
            v[0] = ofBlock(v[0], identity, f);
        }
    }
    template <class F>
    static TW_INLINE float ofBlock(float v, float identity, F f)
    {
        __shared__ float scratch[32]; // one for all: a block waits before it writes there
        return blockReduce(v, identity, scratch, f);
    }
};

} // namespace tw::ops::reduction
