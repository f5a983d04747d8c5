// SPDX-License-Identifier: Apache-2.0
// Rows that lie together (nothing after the axis), read once: each row stays in the registers of a warp or a block.
//   type T; bool LOG: of the result; int THREADS: of a block; int ROW: of them, those of a row; int WIDTH: elements of
//   16 bytes; int PACKS: of them, those of a thread
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/softmax_steps.cuh"

namespace tw::ops::softmax {

template <class F>
TW_INLINE float reduceRow(float v, float identity, F f)
{
    if constexpr (ROW <= 32) {
#pragma unroll
        for (int d = ROW / 2; d > 0; d /= 2)
            v = f(v, __shfl_xor_sync(~0u, v, d));
        return v;
    } else {
        __shared__ float scratch[32];
        return blockReduce(v, identity, scratch, f);
    }
}
TW_INLINE float power(float v)
{
    return sizeof(T) == 2 ? __expf(v) : exp(v);
}
// V elements in each of P packs a thread. EDGES: rows begin at any element; what lies before the first whole pack and
// after the last one, fewer than V elements each, is one more for some of the threads.
template <int V, int P, bool EDGES>
TW_INLINE void rows(Params const& p)
{
    releaseDependents();
    waitForPrevious();
    // Threads after the last row do as the last one does, for all of a warp exchange, and store nothing.
    idx const wanted = blockIdx.x * (THREADS / ROW) + threadIdx.x / ROW, slice = min(wanted, idx(p.slices) - 1);
    idx const lane = threadIdx.x % ROW, n = idx(p.n);
    T const* x = static_cast<T const*>(p.x) + i64(slice) * p.n;
    T* y = static_cast<T*>(p.y) + i64(slice) * p.n;
    idx const head = EDGES ? min(n, idx(-(i64(slice) * i64(p.n)) & (V - 1))) : 0, packs = (n - head) / V;
    idx const tail = EDGES ? n - head - packs * V : 0, behind = head + packs * V + lane;
    float v[P][V], m = lowest(), s = 0, first = lowest(), last = lowest();
    if (EDGES && lane < head)
        first = load<float>(x[lane]);
    if (EDGES && lane < tail)
        last = load<float>(x[behind]);
    x += head;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        idx const at = i * ROW + lane;
        if (at >= packs)
            continue;
        Pack<T, V> const pack = reinterpret_cast<Pack<T, V> const*>(x)[at];
#pragma unroll
        for (int j = 0; j < V; ++j) {
            v[i][j] = load<float>(pack.v[j]);
            m = larger(m, v[i][j]);
        }
    }
    if (EDGES)
        m = larger(m, larger(first, last));
    m = reduceRow(m, lowest(), larger);
#pragma unroll
    for (int i = 0; i < P; ++i) {
        if (i * ROW + lane >= packs)
            continue;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            float const e = power(v[i][j] - m);
            s += e;
            if (!LOG)
                v[i][j] = e;
        }
    }
    if (EDGES) { // 0 where a thread has none
        float const a = power(first - m), b = power(last - m);
        s += a + b;
        if (!LOG) {
            first = a;
            last = b;
        }
    }
    s = reduceRow(s, 0.0f, sum);
    s = LOG ? logf(s) : 1 / s;
    auto finished = [&](float v) { return LOG ? v - m - s : v * s; };
    if (wanted != slice)
        return;
    if (EDGES && lane < head)
        y[lane] = store<T>(finished(first));
    if (EDGES && lane < tail)
        y[behind] = store<T>(finished(last));
    y += head;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        idx const at = i * ROW + lane;
        if (at >= packs)
            continue;
        Pack<T, V> pack;
#pragma unroll
        for (int j = 0; j < V; ++j)
            pack.v[j] = store<T>(finished(v[i][j]));
        reinterpret_cast<Pack<T, V>*>(y)[at] = pack;
    }
}
TW_KERNEL softmax_packs(const __grid_constant__ Params p)
{
    rows<WIDTH, PACKS, false>(p);
}
TW_KERNEL softmax_edges(const __grid_constant__ Params p)
{
    rows<WIDTH, PACKS, true>(p);
}
TW_KERNEL softmax_elements(const __grid_constant__ Params p)
{
    rows<1, PACKS * WIDTH, false>(p);
}

} // namespace tw::ops::softmax
