// SPDX-License-Identifier: Apache-2.0
// A set in chunks, a block for each. The first kernel leaves mean and sum of squared differences of each chunk in the
// workspace; the second one adds a set's up, as if all had been summed around one mean, and normalizes its chunk, which
// is still in L2 when x is not too large.
//   int kThreads, kWidth, kPacks, and what row_weights.cuh wants
#pragma once

#include "ops/layer_norm/row_weights.cuh"

namespace tw::ops::layer_norm {

constexpr idx kChunk = kThreads * kPacks * kWidth;

// Where a block's chunk lies.
struct Chunk
{
    idx set, begin, count;
    TW_INLINE Chunk(RowParams const& p)
    {
        set = divide(idx(blockIdx.x), p.chunks);
        begin = (blockIdx.x - set * idx(p.chunks.d)) * kChunk;
        count = min(kChunk, idx(p.n) - begin);
    }
};
template <int V, int P>
TW_INLINE void measure(RowParams const& p)
{
    Chunk const c(p);
    reduction::Row<V, P, kThreads, kThreads> const row(c.count);
    Pack<T, V> x[P];
    Pack<float, V> v[P];
    releaseDependents();
    waitForPrevious();
    fetch(row, static_cast<T const*>(p.x) + i64(c.set) * p.xPitch + c.begin, x);
    convert(row, x, v);
    float mean[1], squares[1];
    measure(row, v, float(c.count), mean, squares);
    if (threadIdx.x == 0)
        static_cast<float2*>(p.parts)[blockIdx.x] = make_float2(mean[0], squares[0]);
}
template <int V, int P>
TW_INLINE void normalize(RowParams const& p)
{
    using Row = reduction::Row<V, P, kThreads, kThreads>;
    Chunk const c(p);
    Row const row(c.count);
    idx const chunks = idx(p.chunks.d);
    Pack<T, V> x[P];
    RowWeights<Row> weights;
    releaseDependents();
    waitForPrevious();
    fetch(row, static_cast<T const*>(p.x) + i64(c.set) * p.xPitch + c.begin, x);
    weights.fetch(p, row, c.set, c.begin);
    float2 const* const parts = static_cast<float2 const*>(p.parts) + c.set * chunks;
    auto countOf = [&](idx i) { return float(min(kChunk, idx(p.n) - i * kChunk)); };
    float mean[1] = {}, scale[1] = {};
    if constexpr (!kRms) {
        for (idx i = threadIdx.x; i < chunks; i += kThreads)
            mean[0] += parts[i].x * countOf(i);
        row.template join<0>(mean, 0.0f, sum);
        mean[0] /= float(p.n);
    }
    for (idx i = threadIdx.x; i < chunks; i += kThreads) {
        float const away = parts[i].x - mean[0];
        scale[0] += parts[i].y + away * away * countOf(i);
    }
    row.template join<1>(scale, 0.0f, sum);
    scale[0] = scaleOf(scale[0], float(p.n));
    normalize(row, x, mean, scale, weights, p, i64(c.set) * p.yPitch + c.begin);
}
TW_KERNEL_OF(measure_packs, RowParams, measure<kWidth, kPacks>)
TW_KERNEL_OF(normalize_packs, RowParams, normalize<kWidth, kPacks>)
TW_KERNEL_OF(measure_elements, RowParams, measure<1, kPacks * kWidth>)
TW_KERNEL_OF(normalize_elements, RowParams, normalize<1, kPacks * kWidth>)

} // namespace tw::ops::layer_norm
