// SPDX-License-Identifier: Apache-2.0
// Sets that are columns.
//   int kThreads, kLanes, kWidth, kPacks; bool kByRow: element i of every set has the number i
#pragma once

#include "families/reduction/cuda_column.cuh"
#include "ops/layer_norm/layer_norm_registers.cuh"

namespace tw::ops::layer_norm {

// Gamma and beta of a thread's elements, or of its sets.
template <class Column>
struct ColumnWeights
{
    static constexpr int N = kByRow ? Column::P : Column::V;
    float gammas[N], betas[N];

    TW_INLINE ColumnWeights(ColumnParams const& p, Column const& column)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            idx at = column.row + k * (kThreads / kLanes);
            if constexpr (kByRow) {
                if (!column.has(k))
                    continue;
            } else {
                idx const place = divide(idx(column.begin) + k, p.tail);
                at = place - divide(place, p.count) * idx(p.count.d);
            }
            if constexpr (kGamma)
                gammas[k] = load<float>(static_cast<T const*>(p.gamma)[at]);
            if constexpr (kBeta)
                betas[k] = load<float>(static_cast<T const*>(p.beta)[at]);
        }
    }
    TW_INLINE float gamma(int i, int j) const
    {
        return gammas[kByRow ? i : j];
    }
    TW_INLINE float beta(int i, int j) const
    {
        return betas[kByRow ? i : j];
    }
};
template <int V>
TW_INLINE void columns(ColumnParams const& p)
{
    using Column = reduction::Column<V, kPacks, kLanes, kThreads / kLanes>;
    Column const column(p, int(p.n));
    ColumnWeights<Column> const weights(p, column);
    Pack<T, V> x[kPacks];
    waitForPrevious();
    releaseDependents();
    fetch(column, static_cast<T const*>(p.x), x);
    float mean[V], scale[V];
    measure(column, x, float(p.n), mean, scale);
#pragma unroll
    for (int j = 0; j < V; ++j)
        scale[j] = scaleOf(scale[j], float(p.n));
    normalize(column, x, mean, scale, weights, p, 0);
}
TW_KERNEL_OF(__launch_bounds__(kThreads) layer_norm_column_packs, ColumnParams, columns<kWidth>)
TW_KERNEL_OF(__launch_bounds__(kThreads) layer_norm_columns, ColumnParams, columns<1>)

} // namespace tw::ops::layer_norm
