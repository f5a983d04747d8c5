// SPDX-License-Identifier: Apache-2.0
// A set in the registers of kRow threads, a power of two up to 32 or the whole block: V elements in each of P packs a
// thread. Gamma and beta that no kernel writes are read before the kernel before has ended. As a reduction::Row, which is
// shorter, sets of 768 numbers take a quarter longer on an H200: more registers.
//   int kRow, kThreads, kWidth, kPacks; bool kEarly, and what row_weights.cuh wants
#pragma once

#include "ops/layer_norm/row_weights.cuh"

namespace tw::ops::layer_norm {

TW_INLINE float total(float v)
{
    if constexpr (kRow <= 32) {
#pragma unroll
        for (int d = kRow / 2; d > 0; d /= 2)
            v += __shfl_xor_sync(0xffffffffu, v, d);
        return v;
    } else {
        __shared__ float scratch[32];
        return blockReduce(v, 0.0f, scratch, sum);
    }
}
template <int V, int P>
TW_INLINE void rows(RowParams const& p)
{
    // Threads behind the last set do as the last one does, for all of a warp exchange, and store nothing.
    idx const wanted = blockIdx.x * (kThreads / kRow) + threadIdx.x / kRow, row = min(wanted, idx(p.sets) - 1);
    idx const lane = threadIdx.x % kRow, n = idx(p.n), packs = n / V;
    Weights<V> gamma[P], beta[P];
    Pack<T, V> x[P];
    auto weights = [&] {
#pragma unroll
        for (int i = 0; i < P; ++i)
            if (i * kRow + lane < packs) {
                idx const at = (i * kRow + lane) * V;
                if constexpr (kGamma)
                    gamma[i].fetch(p, p.gamma, row, at);
                if constexpr (kBeta)
                    beta[i].fetch(p, p.beta, row, at);
            }
    };
    releaseDependents();
    if constexpr (kEarly)
        weights();
    waitForPrevious();
    auto const* const from = reinterpret_cast<Pack<T, V> const*>(static_cast<T const*>(p.x) + i64(row) * p.xPitch);
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * kRow + lane < packs)
            x[i] = from[i * kRow + lane];
    if constexpr (!kEarly)
        weights();
    float v[P][V], mean = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * kRow + lane < packs)
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[i][j] = load<float>(x[i].v[j]);
                mean += v[i][j];
            }
    mean = kRms ? 0 : total(mean) / float(p.n);
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * kRow + lane < packs)
#pragma unroll
            for (int j = 0; j < V; ++j) {
                v[i][j] -= mean;
                squares += v[i][j] * v[i][j];
            }
    float const scale = scaleOf(total(squares), float(p.n));
    Steps const steps = stepsOf(p);
    auto* const to = reinterpret_cast<Pack<T, V>*>(static_cast<T*>(p.y) + i64(row) * p.yPitch);
    auto* const integers = reinterpret_cast<Pack<i8, V>*>(static_cast<i8*>(p.integers) + i64(row) * p.yPitch);
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * kRow + lane < packs && wanted == row) {
            Pack<T, V> y;
#pragma unroll
            for (int j = 0; j < V; ++j)
                y.v[j] = finished(v[i][j] * scale, gamma[i].at(j), beta[i].at(j));
            if constexpr (kFloats)
                to[i * kRow + lane] = y;
            if constexpr (kIntegers)
                integers[i * kRow + lane] = integersOf(y, steps);
        }
}
TW_KERNEL_OF(__launch_bounds__(kThreads) layer_norm_packs, RowParams, rows<kWidth, kPacks>)
TW_KERNEL_OF(__launch_bounds__(kThreads) layer_norm_elements, RowParams, rows<1, kPacks * kWidth>)

} // namespace tw::ops::layer_norm
