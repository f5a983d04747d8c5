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

// V numbers of a thread.
template <int V, bool IN_PAIRS>
struct Numbers
{
    using Stored = Pack<T, V>;
    float v[V];

    TW_INLINE void clear()
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = lowest();
    }
    TW_INLINE void load(Stored const& from)
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = cuda::load<float>(from.v[j]);
    }
    TW_INLINE void raise(Numbers const& to)
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = larger(v[j], to.v[j]);
    }
    TW_INLINE void get(float (&to)[V]) const
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            to[j] = v[j];
    }
    TW_INLINE void set(float const (&from)[V])
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = from[j];
    }
    TW_INLINE Stored stored() const
    {
        Stored to;
#pragma unroll
        for (int j = 0; j < V; ++j)
            to.v[j] = store<T>(v[j]);
        return to;
    }
};
// FP16, two in a register.
template <int V>
struct Numbers<V, true>
{
    using Stored = Pack<u32, V / 2>;
    Stored pairs;

    TW_INLINE void clear()
    {
#pragma unroll
        for (int j = 0; j < V / 2; ++j)
            pairs.v[j] = lowestPair(f16());
    }
    TW_INLINE void load(Stored const& from)
    {
        pairs = from;
    }
    TW_INLINE void raise(Numbers const& to)
    {
#pragma unroll
        for (int j = 0; j < V / 2; ++j)
            asm("max.f16x2 %0, %1, %2;" : "=r"(pairs.v[j]) : "r"(pairs.v[j]), "r"(to.pairs.v[j]));
    }
    TW_INLINE void get(float (&to)[V]) const
    {
#pragma unroll
        for (int j = 0; j < V; j += 2)
            asm("{\n.reg .b16 a, b;\nmov.b32 {a, b}, %2;\ncvt.f32.f16 %0, a;\ncvt.f32.f16 %1, b;\n}"
                : "=f"(to[j]), "=f"(to[j + 1])
                : "r"(pairs.v[j / 2]));
    }
    TW_INLINE void set(float const (&from)[V])
    {
#pragma unroll
        for (int j = 0; j < V; j += 2)
            asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs.v[j / 2]) : "f"(from[j + 1]), "f"(from[j]));
    }
    TW_INLINE Stored stored() const
    {
        return pairs;
    }
};
// Of the set that begins at x. IN_PAIRS: registers keep FP16 numbers, x and then powers of each thread's own largest
// number, not FP32: half the registers are worth that powers are rounded.
template <bool IN_PAIRS, class Set>
TW_INLINE void softmax(Set const& set, T const* x, T* y)
{
    constexpr int V = Set::V, P = Set::P, S = Set::SETS;
    using Held = Numbers<V, IN_PAIRS>;
    using Stored = typename Held::Stored;
    Held v[P], most;
    float e[V], m[S], s[S], edge[2] = {lowest(), lowest()};
    {
        Stored u[P];
        if constexpr (Set::EDGES)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                if (set.hasEdge(i))
                    edge[i] = load<float>(x[set.edge(i)]);
#pragma unroll
        for (int i = 0; i < P; ++i)
            if (set.has(i))
                u[i] = *reinterpret_cast<Stored const*>(x + set.at(i));
        most.clear();
#pragma unroll
        for (int i = 0; i < P; ++i)
            if (set.has(i)) {
                v[i].load(u[i]);
                most.raise(v[i]);
            }
    }
    most.get(e);
#pragma unroll
    for (int j = 0; j < V; ++j)
        m[j % S] = j < S ? e[j] : larger(m[j % S], e[j]);
    if (Set::EDGES)
        m[0] = larger(m[0], larger(edge[0], edge[1]));
    if constexpr (!IN_PAIRS)
        set.template join<0>(m, lowest(), larger);
    float base[S];
#pragma unroll
    for (int k = 0; k < S; ++k) {
        m[k] = baseOf(m[k]);
        base[k] =
            IN_PAIRS && m[k] == lowest() ? 0.0f : m[k]; // a thread of nothing but -inf adds nothing to others' sum
        s[k] = 0;
    }
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (set.has(i)) {
            v[i].get(e);
#pragma unroll
            for (int j = 0; j < V; ++j) {
                e[j] = power(e[j], base[j % S]);
                s[j % S] += e[j];
            }
            if (!LOG)
                v[i].set(e);
        }
    if (Set::EDGES) // 0 where a thread has none
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float const own = power(edge[i], base[0]);
            s[0] += own;
            if (!LOG)
                edge[i] = own;
        }
    if constexpr (IN_PAIRS) {
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
        s[k] = LOG ? logf(s[k]) : (IN_PAIRS ? powerOf(fminf(base[k] - m[k], 0.0f)) : 1.0f) / s[k];
    auto finished = [&](float v, int k) { return LOG ? v - numberOf(m[k]) - s[k] : v * s[k]; };
    if constexpr (Set::EDGES)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (set.hasEdge(i))
                y[set.edge(i)] = store<T>(finished(edge[i], 0));
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (set.has(i)) {
            v[i].get(e);
#pragma unroll
            for (int j = 0; j < V; ++j)
                e[j] = finished(e[j], j % S);
            v[i].set(e);
            *reinterpret_cast<Stored*>(y + set.at(i)) = v[i].stored();
        }
}

} // namespace tw::ops::softmax
