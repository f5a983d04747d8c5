// SPDX-License-Identifier: Apache-2.0
// A set in chunks, a block for each. The first kernel leaves mean and sum of squared differences of each chunk in the
// workspace; the second one adds a set's up, as if all had been summed around one mean, and normalizes its chunk, which
// is still in L2 when x is not too large.
//   int kThreads, kWidth, kPacks, and what row_weights.cuh wants
#pragma once

#include "ops/layer_norm/row_weights.cuh"

namespace tw::ops::layer_norm {

constexpr idx kChunk = kThreads * kPacks * kWidth;

// A block's chunk: V elements in each of P packs a thread.
struct Chunk
{
    idx row, number, begin, count;
    TW_INLINE Chunk(RowParams const& p)
    {
        row = divide(idx(blockIdx.x), p.chunks);
        number = blockIdx.x - row * idx(p.chunks.d);
        begin = number * kChunk;
        count = min(kChunk, idx(p.n) - begin);
    }
};
template <int V, int P>
TW_INLINE void fetch(RowParams const& p, Chunk const& c, Pack<T, V> (&to)[P])
{
    T const* const from = static_cast<T const*>(p.x) + i64(c.row) * p.xPitch + c.begin;
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * kThreads + threadIdx.x < c.count / V)
            to[i] = reinterpret_cast<Pack<T, V> const*>(from)[i * kThreads + threadIdx.x];
}
template <int V, int P>
TW_INLINE void measure(RowParams const& p)
{
    __shared__ float scratch[32];
    Chunk const c(p);
    idx const packs = c.count / V;
    Pack<T, V> x[P];
    releaseDependents();
    waitForPrevious();
    fetch(p, c, x);
    float v[P][V], mean = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * kThreads + threadIdx.x < packs)
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[i][j] = load<float>(x[i].v[j]);
                mean += v[i][j];
            }
    mean = kRms ? 0 : blockReduce(mean, 0.0f, scratch, sum) / float(c.count);
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * kThreads + threadIdx.x < packs)
#pragma unroll
            for (int j = 0; j < V; ++j)
                squares += (v[i][j] - mean) * (v[i][j] - mean);
    squares = blockReduce(squares, 0.0f, scratch, sum);
    if (threadIdx.x == 0)
        static_cast<float2*>(p.parts)[blockIdx.x] = make_float2(mean, squares);
}
template <int V, int P>
TW_INLINE void normalize(RowParams const& p)
{
    __shared__ float scratch[32];
    Chunk const c(p);
    idx const packs = c.count / V, chunks = idx(p.chunks.d);
    Pack<T, V> x[P];
    Weights<V> gamma[P], beta[P];
    releaseDependents();
    waitForPrevious();
    fetch(p, c, x);
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * kThreads + threadIdx.x < packs) {
            idx const at = c.begin + (i * kThreads + threadIdx.x) * V;
            if constexpr (kGamma)
                gamma[i].fetch(p, p.gamma, c.row, at);
            if constexpr (kBeta)
                beta[i].fetch(p, p.beta, c.row, at);
        }
    float2 const* const parts = static_cast<float2 const*>(p.parts) + c.row * chunks;
    auto countOf = [&](idx i) { return float(min(kChunk, idx(p.n) - i * kChunk)); };
    float mean = 0, squares = 0;
    if constexpr (!kRms) {
        for (idx i = threadIdx.x; i < chunks; i += kThreads)
            mean += parts[i].x * countOf(i);
        mean = blockReduce(mean, 0.0f, scratch, sum) / float(p.n);
    }
    for (idx i = threadIdx.x; i < chunks; i += kThreads) {
        float const away = parts[i].x - mean;
        squares += parts[i].y + away * away * countOf(i);
    }
    float const scale = scaleOf(blockReduce(squares, 0.0f, scratch, sum), float(p.n));
    T* const y = static_cast<T*>(p.y) + i64(c.row) * p.yPitch + c.begin;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        idx const at = i * kThreads + threadIdx.x;
        if (at >= packs)
            continue;
        Pack<T, V> pack;
#pragma unroll
        for (int j = 0; j < V; ++j)
            pack.v[j] = finished((load<float>(x[i].v[j]) - mean) * scale, gamma[i].at(j), beta[i].at(j));
        reinterpret_cast<Pack<T, V>*>(y)[at] = pack;
    }
}
TW_KERNEL measure_packs(const __grid_constant__ RowParams p)
{
    measure<kWidth, kPacks>(p);
}
TW_KERNEL normalize_packs(const __grid_constant__ RowParams p)
{
    normalize<kWidth, kPacks>(p);
}
TW_KERNEL measure_elements(const __grid_constant__ RowParams p)
{
    measure<1, kPacks * kWidth>(p);
}
TW_KERNEL normalize_elements(const __grid_constant__ RowParams p)
{
    normalize<1, kPacks * kWidth>(p);
}

} // namespace tw::ops::layer_norm
