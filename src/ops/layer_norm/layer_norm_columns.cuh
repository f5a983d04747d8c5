// SPDX-License-Identifier: Apache-2.0
// Sets whose elements lie below each other: a block has kLanes times V neighbouring sets, P elements of each in the
// registers of every thread.
//   int kThreads, kLanes, kWidth, kPacks; bool kByRow: element i of every set has the number i
#pragma once

#include "ops/layer_norm/layer_norm.cuh"

namespace tw::ops::layer_norm {

constexpr int kRows = kThreads / kLanes; // of the block at a time

// Of the same column in all threads.
template <int V>
TW_INLINE void total(float (&v)[V])
{
    constexpr int GROUP = kLanes < 32 ? 32 : kLanes, GROUPS = kThreads / GROUP, ALL = kLanes * V;
    __shared__ float part[GROUPS][ALL], all[ALL];
    int const lane = threadIdx.x % kLanes;
#pragma unroll
    for (int d = kLanes; d < 32; d *= 2)
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] += __shfl_xor_sync(0xffffffffu, v[j], d);
    __syncthreads();
    if (threadIdx.x % GROUP < kLanes)
#pragma unroll
        for (int j = 0; j < V; ++j)
            part[threadIdx.x / GROUP][lane * V + j] = v[j];
    __syncthreads();
    for (int c = threadIdx.x; c < ALL; c += kThreads) {
        float s = part[0][c];
#pragma unroll
        for (int g = 1; g < GROUPS; ++g)
            s += part[g][c];
        all[c] = s;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < V; ++j)
        v[j] = all[lane * V + j];
}
template <int V, int P>
TW_INLINE void columns(ColumnParams const& p)
{
    idx const column = idx(blockIdx.x) * kLanes + threadIdx.x % kLanes, first = threadIdx.x / kLanes, n = idx(p.n);
    bool const any = column < p.columns;
    idx const o = divide(column, p.columnsOfRow);
    i64 const begin = i64(o) * p.n * p.inner + i64(column - o * idx(p.columnsOfRow.d)) * V;
    float gammas[P], betas[P]; // of rows
    if constexpr (kByRow)
#pragma unroll
        for (int i = 0; i < P; ++i)
            if (first + i * kRows < n) {
                if constexpr (kGamma)
                    gammas[i] = load<float>(static_cast<T const*>(p.gamma)[first + i * kRows]);
                if constexpr (kBeta)
                    betas[i] = load<float>(static_cast<T const*>(p.beta)[first + i * kRows]);
            }
    float gamma[V], beta[V];
    if constexpr (!kByRow)
#pragma unroll
        for (int j = 0; j < V; ++j) {
            idx const place = divide(idx(begin) + j, p.tail), weight = place - divide(place, p.count) * idx(p.count.d);
            if constexpr (kGamma)
                gamma[j] = any ? load<float>(static_cast<T const*>(p.gamma)[weight]) : 0;
            if constexpr (kBeta)
                beta[j] = any ? load<float>(static_cast<T const*>(p.beta)[weight]) : 0;
        }
    Pack<T, V> x[P];
    waitForPrevious();
    releaseDependents();
    auto has = [&](int i) { return any && first + i * kRows < n; };
    T const* const from = static_cast<T const*>(p.x) + begin;
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (has(i))
            x[i] = *reinterpret_cast<Pack<T, V> const*>(from + i64(first + i * kRows) * p.inner);
    float mean[V], squares[V];
#pragma unroll
    for (int j = 0; j < V; ++j)
        mean[j] = squares[j] = 0;
    if constexpr (!kRms) {
#pragma unroll
        for (int i = 0; i < P; ++i)
            if (has(i))
#pragma unroll
                for (int j = 0; j < V; ++j)
                    mean[j] += load<float>(x[i].v[j]);
        total(mean);
#pragma unroll
        for (int j = 0; j < V; ++j)
            mean[j] /= float(p.n);
    }
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (has(i))
#pragma unroll
            for (int j = 0; j < V; ++j) {
                float const d = load<float>(x[i].v[j]) - mean[j];
                squares[j] += d * d;
            }
    total(squares);
    T* const to = static_cast<T*>(p.y) + begin;
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (has(i)) {
            Pack<T, V> y;
#pragma unroll
            for (int j = 0; j < V; ++j)
                y.v[j] = finished((load<float>(x[i].v[j]) - mean[j]) * scaleOf(squares[j], float(p.n)),
                                  kByRow ? gammas[i] : gamma[j], kByRow ? betas[i] : beta[j]);
            *reinterpret_cast<Pack<T, V>*>(to + i64(first + i * kRows) * p.inner) = y;
        }
}
TW_KERNEL __launch_bounds__(kThreads) layer_norm_column_packs(const __grid_constant__ ColumnParams p)
{
    columns<kWidth, kPacks>(p);
}
TW_KERNEL __launch_bounds__(kThreads) layer_norm_columns(const __grid_constant__ ColumnParams p)
{
    columns<1, kPacks>(p);
}

} // namespace tw::ops::layer_norm
