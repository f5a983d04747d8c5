// SPDX-License-Identifier: Apache-2.0
// A softmax of sets that threads have in their registers: every number is read once.
//   type T; bool LOG: of the result
#pragma once

#include "families/reduction/cuda_log_sum.cuh"
#include "kernels/cuda/common/half_math.cuh"
#include "ops/softmax/softmax_steps.cuh"

namespace tw::ops::softmax {

// Exponentials below the largest number: power(x, baseOf(m)) is exp(x - m), powerOf(a - b) takes those above base a to those
// above base b. For FP16, powers of 2: a base's rounding is in all powers of a set and cancels out; numberOf(base) has it,
// too.
template <class>
constexpr bool kIsF16 = false;
template <>
constexpr bool kIsF16<f16> = true;
TW_INLINE float baseOf(float m)
{
    return kIsF16<T> ? m * 1.44269504f : m;
}
TW_INLINE float numberOf(float base)
{
    return kIsF16<T> ? base * 0.693147181f : base;
}
TW_INLINE float powerOf(float x)
{
    return kIsF16<T> ? approximatePower(x) : sizeof(T) == 2 ? halfExp(x) : exp(x);
}
TW_INLINE float power(float x, float base)
{
    return powerOf(kIsF16<T> ? fmaf(x, 1.44269504f, -base) : x - base);
}

// V numbers as they are stored; narrow ones two in a register.
template <int V, bool ARE_PAIRS = sizeof(T) == 2 && V % 2 == 0>
struct alignas(sizeof(T) * V) Numbers
{
    u32 v[V / 2];

    TW_INLINE void raise(Numbers const& to)
    {
#pragma unroll
        for (int j = 0; j < V / 2; ++j)
            asm("max." TW_NARROW_PTX "x2 %0, %1, %2;" : "=r"(v[j]) : "r"(v[j]), "r"(to.v[j]));
    }
    TW_INLINE void get(float (&to)[V]) const
    {
#pragma unroll
        for (int j = 0; j < V; ++j) {
            Narrow number;
            number.bits = u16(j % 2 ? v[j / 2] >> 16 : v[j / 2]);
            to[j] = load<float>(number);
        }
    }
    TW_INLINE void set(float const (&from)[V])
    {
#pragma unroll
        for (int j = 0; j < V; j += 2)
            asm("cvt.rn." TW_NARROW_PTX "x2.f32 %0, %1, %2;" : "=r"(v[j / 2]) : "f"(from[j + 1]), "f"(from[j]));
    }
};
template <int V>
struct alignas(sizeof(T) * V) Numbers<V, false>
{
    T v[V];

    TW_INLINE void raise(Numbers const& to)
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            if constexpr (sizeof(T) == 2)
                asm("max." TW_NARROW_PTX " %0, %1, %2;" : "=h"(v[j].bits) : "h"(v[j].bits), "h"(to.v[j].bits));
            else
                v[j] = larger(v[j], to.v[j]);
    }
    TW_INLINE void get(float (&to)[V]) const
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            to[j] = load<float>(v[j]);
    }
    TW_INLINE void set(float const (&from)[V])
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = store<T>(from[j]);
    }
};
// Of the set that begins at x. IS_NARROW: registers keep numbers as they are stored, x and then powers above each thread's
// own largest number, not FP32: half the registers are worth that powers are rounded.
template <bool IS_NARROW, class Set>
TW_INLINE void softmax(Set const& set, T const* x, T* y)
{
    constexpr int V = Set::V, P = Set::P, S = Set::SETS;
    Numbers<V> u[P], most;
    float v[P][V], e[V], m[S], s[S], edge[2] = {lowest(), lowest()};
    if constexpr (Set::EDGES)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (set.hasEdge(i))
                edge[i] = load<float>(x[set.edge(i)]);
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (set.has(i))
            u[i] = *reinterpret_cast<Numbers<V> const*>(x + set.at(i));
#pragma unroll
    for (int j = 0; j < V; ++j)
        e[j] = lowest();
    most.set(e);
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (set.has(i))
            most.raise(u[i]);
    most.get(e);
#pragma unroll
    for (int j = 0; j < V; ++j)
        m[j % S] = j < S ? e[j] : larger(m[j % S], e[j]);
    if (Set::EDGES)
        m[0] = larger(m[0], larger(edge[0], edge[1]));
    if constexpr (!IS_NARROW)
        set.template join<0>(m, lowest(), larger);
    float base[S];
#pragma unroll
    for (int k = 0; k < S; ++k) {
        m[k] = baseOf(m[k]);
        base[k] =
            IS_NARROW && m[k] == lowest() ? 0.0f : m[k]; // a thread of nothing but -inf adds nothing to others' sum
        s[k] = 0;
    }
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (set.has(i)) {
            u[i].get(v[i]);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                float const own = power(v[i][j], base[j % S]);
                s[j % S] += own;
                if (!LOG)
                    v[i][j] = own;
            }
            if (IS_NARROW)
                u[i].set(v[i]);
        }
    if (Set::EDGES) // 0 where a thread has none
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float const own = power(edge[i], base[0]);
            s[0] += own;
            if (!LOG)
                edge[i] = own;
        }
    if constexpr (IS_NARROW) {
        reduction::LogSum all[S];
#pragma unroll
        for (int k = 0; k < S; ++k)
            all[k] = reduction::LogSum(m[k], s[k]);
        set.template join<0>(all, reduction::LogSum(0),
                             [](reduction::LogSum a, reduction::LogSum b) { return join(a, b, powerOf); });
#pragma unroll
        for (int k = 0; k < S; ++k) {
            m[k] = all[k].most;
            s[k] = all[k].sum;
        }
    } else {
        set.template join<1>(s, 0.0f, sum);
    }
    if (!set.stores)
        return;
#pragma unroll
    for (int k = 0; k < S; ++k)
        s[k] = LOG ? logf(s[k]) : (IS_NARROW ? powerOf(fminf(base[k] - m[k], 0.0f)) : 1.0f) / s[k];
    auto finished = [&](float v, int k) { return LOG ? v - numberOf(m[k]) - s[k] : v * s[k]; };
    if constexpr (Set::EDGES)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (set.hasEdge(i))
                y[set.edge(i)] = store<T>(finished(edge[i], 0));
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (set.has(i)) {
            if (IS_NARROW)
                u[i].get(v[i]);
#pragma unroll
            for (int j = 0; j < V; ++j)
                v[i][j] = finished(v[i][j], j % S);
            u[i].set(v[i]);
            *reinterpret_cast<Numbers<V>*>(y + set.at(i)) = u[i];
        }
}

} // namespace tw::ops::softmax
