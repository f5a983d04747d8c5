// SPDX-License-Identifier: Apache-2.0
// Sets that are rows. Gamma and beta that no kernel writes are read before the kernel before has ended.
//   int kRow: threads of a row; int kThreads, kWidth, kPacks; bool kEarly, and what row_weights.cuh wants
#pragma once

#include "ops/layer_norm/row_weights.cuh"

namespace tw::ops::layer_norm {

template <int V, int P>
TW_INLINE void rows(RowParams const& p)
{
    using Row = reduction::Row<V, P, kRow, kThreads>;
    Row const row(idx(p.sets), idx(p.n));
    RowWeights<Row> weights;
    Pack<T, V> x[P];
    Pack<float, V> v[P];
    releaseDependents();
    if constexpr (kEarly)
        weights.fetch(p, row, row.number, 0);
    waitForPrevious();
    fetch(row, static_cast<T const*>(p.x) + i64(row.number) * p.xPitch, x);
    if constexpr (!kEarly)
        weights.fetch(p, row, row.number, 0);
    convert(row, x, v);
    float mean[1], scale[1];
    measure(row, v, float(p.n), mean, scale);
    scale[0] = scaleOf(scale[0], float(p.n));
    normalize(row, v, mean, scale, weights, p, i64(row.number) * p.yPitch);
}
TW_KERNEL __launch_bounds__(kThreads) layer_norm_packs(const __grid_constant__ RowParams p)
{
    rows<kWidth, kPacks>(p);
}
TW_KERNEL __launch_bounds__(kThreads) layer_norm_elements(const __grid_constant__ RowParams p)
{
    rows<1, kPacks * kWidth>(p);
}

} // namespace tw::ops::layer_norm
