// SPDX-License-Identifier: Apache-2.0
// Norms of sets that threads have in their registers (families/reduction).
#pragma once

#include "kernels/cuda/common/bytes.cuh"
#include "ops/layer_norm/layer_norm.cuh"

namespace tw::ops::layer_norm {

template <class Set>
TW_INLINE void fetch(Set const& set, T const* from, Pack<T, Set::V> (&x)[Set::P])
{
#pragma unroll
    for (int i = 0; i < Set::P; ++i)
        if (set.has(i))
            x[i] = *reinterpret_cast<Pack<T, Set::V> const*>(from + set.at(i));
}
template <class Set>
TW_INLINE void convert(Set const& set, Pack<T, Set::V> const (&x)[Set::P], Pack<float, Set::V> (&to)[Set::P])
{
#pragma unroll
    for (int i = 0; i < Set::P; ++i)
        if (set.has(i))
#pragma unroll
            for (int j = 0; j < Set::V; ++j)
                to[i].v[j] = load<float>(x[i].v[j]);
}
// x: what was fetched, or those numbers as floats, where registers are enough.
// Of each set, n elements: their mean (0 for kRms), the sum of squared differences from it.
template <class Set, class X>
TW_INLINE void measure(Set const& set, Pack<X, Set::V> const (&x)[Set::P], float n, float (&mean)[Set::SETS],
                       float (&squares)[Set::SETS])
{
    constexpr int V = Set::V, P = Set::P, S = Set::SETS;
#pragma unroll
    for (int k = 0; k < S; ++k)
        mean[k] = squares[k] = 0;
    if constexpr (!kRms) {
#pragma unroll
        for (int i = 0; i < P; ++i)
            if (set.has(i))
#pragma unroll
                for (int j = 0; j < V; ++j)
                    mean[j % S] += load<float>(x[i].v[j]);
        set.template join<0>(mean, 0.0f, sum);
#pragma unroll
        for (int k = 0; k < S; ++k)
            mean[k] /= n;
    }
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (set.has(i))
#pragma unroll
            for (int j = 0; j < V; ++j) {
                float const d = load<float>(x[i].v[j]) - mean[j % S];
                squares[j % S] += d * d;
            }
    set.template join<1>(squares, 0.0f, sum);
}
// What the floats of a pack are as integers.
template <int V>
TW_INLINE Pack<i8, V> integersOf(Pack<T, V> const& y, Steps const& steps)
{
    Pack<i8, V> q;
    if constexpr (V % 2 == 0) {
#pragma unroll
        for (int j = 0; j < V; j += 2) {
            u32 const bytes = toBytes(steps(load<float>(y.v[j])), steps(load<float>(y.v[j + 1])));
            q.v[j] = i8(bytes);
            q.v[j + 1] = i8(bytes >> 8);
        }
    } else {
#pragma unroll
        for (int j = 0; j < V; ++j)
            q.v[j] = store<i8>(steps(load<float>(y.v[j])));
    }
    return q;
}
// `at`: of what the set counts from, in y.
template <class Set, class X, class Weights>
TW_INLINE void normalize(Set const& set, Pack<X, Set::V> const (&x)[Set::P], float const (&mean)[Set::SETS],
                         float const (&scale)[Set::SETS], Weights const& weights, Tensors const& p, i64 at)
{
    constexpr int V = Set::V, P = Set::P, S = Set::SETS;
    Steps const steps = stepsOf(p);
    T* const to = static_cast<T*>(p.y) + at;
    i8* const integers = static_cast<i8*>(p.integers) + at;
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (set.has(i) && set.stores) {
            Pack<T, V> y;
#pragma unroll
            for (int j = 0; j < V; ++j)
                y.v[j] = finished((load<float>(x[i].v[j]) - mean[j % S]) * scale[j % S], weights.gamma(i, j),
                                  weights.beta(i, j));
            if constexpr (kFloats)
                *reinterpret_cast<Pack<T, V>*>(to + set.at(i)) = y;
            if constexpr (kIntegers)
                *reinterpret_cast<Pack<i8, V>*>(integers + set.at(i)) = integersOf(y, steps);
        }
}

} // namespace tw::ops::layer_norm
