// SPDX-License-Identifier: Apache-2.0
// x: [outer, n, inner]. A block has X packs of V neighbouring columns; Y threads share the axis of each, so that every
// number is read once and stays in a register.
//   type T; bool LOG: of the result; int N: elements along the axis, the most where they are not EXACT; int X, Y; bool EXACT; bool RAW:
// registers keep
//   FP16 numbers, x and then powers, not FP32; int WIDTH: columns of a pack; int RESIDENT: blocks of a multiprocessor
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/softmax/softmax_params.h"

namespace tw::ops::softmax {

constexpr int EACH = (N + Y - 1) / Y;
// Exponentials below a column's largest number: power(x, baseOf(m)) is exp(x - m); between(a, b) takes powers above
// base a to those above base b. For FP16, powers of 2: a base's rounding is in all powers of a column and cancels out;
// none that matters is subnormal.
constexpr bool IS_HALF = sizeof(T) == 2;
constexpr float LN2 = 0.693147181f; // a base's number is m again
TW_INLINE float power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
TW_INLINE float baseOf(float m)
{
    return IS_HALF ? m * 1.44269504f : m;
}
TW_INLINE float power(float x, float base)
{
    return IS_HALF ? power2(fmaf(x, 1.44269504f, -base)) : exp(x - base);
}
TW_INLINE float between(float a, float b)
{
    return IS_HALF ? power2(a - b) : exp(a - b);
}
TW_INLINE float larger(float a, float b)
{
    return fmaxf(a, b);
} // NaN shows in the sums
TW_INLINE float sum(float a, float b)
{
    return a + b;
}
// Two FP16 numbers.
TW_INLINE u32 largerPair(u32 a, u32 b)
{
    u32 w;
    asm("max.f16x2 %0, %1, %2;" : "=r"(w) : "r"(a), "r"(b));
    return w;
}
TW_INLINE void split(u32 w, float& a, float& b)
{
    asm("{\n.reg .b16 a, b;\nmov.b32 {a, b}, %2;\ncvt.f32.f16 %0, a;\ncvt.f32.f16 %1, b;\n}"
        : "=f"(a), "=f"(b)
        : "r"(w));
}
TW_INLINE u32 join(float a, float b)
{
    u32 w;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(b), "f"(a));
    return w;
}
// Over the Y threads of a column.
template <int V, class F>
TW_INLINE void share(float (&v)[V], float (&part)[Y][V][X], F f)
{
    if (Y == 1)
        return;
    int const cx = threadIdx.x % X, cy = threadIdx.x / X;
#pragma unroll
    for (int k = 0; k < V; ++k)
        part[cy][k][cx] = v[k];
    __syncthreads();
    if (Y >= 8) { // else every thread would read as much as it has
        float* const all = &part[0][0][0];
        for (int c = threadIdx.x; c < V * X; c += X * Y) {
            float sum = all[c];
#pragma unroll
            for (int r = 1; r < Y; ++r)
                sum = f(sum, all[r * V * X + c]);
            all[c] = sum;
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < V; ++k)
        v[k] = part[0][k][cx];
    if (Y < 8)
#pragma unroll
        for (int r = 1; r < Y; ++r)
#pragma unroll
            for (int k = 0; k < V; ++k)
                v[k] = f(v[k], part[r][k][cx]);
}
// Of each thread's largest number, which is in part[0], and its sum of exponentials below that, those of the column.
template <int V>
TW_INLINE void shareBoth(float (&m)[V], float (&s)[V], float (&part)[2][Y][V][X])
{
    if (Y == 1)
        return;
    int const cx = threadIdx.x % X, cy = threadIdx.x / X;
#pragma unroll
    for (int k = 0; k < V; ++k)
        part[1][cy][k][cx] = s[k];
    __syncthreads();
    float *const largest = &part[0][0][0][0], *const sums = &part[1][0][0][0];
    for (int c = threadIdx.x; c < V * X; c += X * Y) {
        float all = largest[c], total = 0;
#pragma unroll
        for (int r = 1; r < Y; ++r)
            all = larger(all, largest[r * V * X + c]);
#pragma unroll
        for (int r = 0; r < Y; ++r)
            total += sums[r * V * X + c] * between(largest[r * V * X + c], all);
        largest[c] = all;
        sums[c] = total;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < V; ++k) {
        m[k] = part[0][0][k][cx];
        s[k] = part[1][0][k][cx];
    }
}
template <int V>
TW_INLINE void columns(ColumnsParams const& p)
{
    __shared__ float part[Y == 1 ? 1 : 2][Y][V][X];
    // Threads after the last pack do as the last one does, and store nothing.
    idx const wanted = blockIdx.x * idx(X) + threadIdx.x % X, pack = min(wanted, idx(p.packs) - 1),
              o = divide(pack, p.packsOfRow);
    int const cy = threadIdx.x / X, n = EXACT ? N : int(p.n);
    i64 const inner = i64(p.packsOfRow.d) * V,
              begin = i64(o) * n * inner + i64(pack - o * idx(p.packsOfRow.d)) * V + cy * inner;
    T const* const x = static_cast<T const*>(p.x) + begin;
    T* const y = static_cast<T*>(p.y) + begin;
    // Of thread cy: cy, cy + Y, ...
    auto has = [&](int i) { return (EXACT && (i + 1) * Y <= N) || cy + i * Y < n; };
    waitForPrevious();
    releaseDependents();
    if constexpr (RAW && V >= 2) {
        typedef Pack<u32, V / 2> Pairs;
        Pairs u[EACH], most;
        float m[V], s[V], base[V];
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (has(i))
                u[i] = *reinterpret_cast<Pairs const*>(x + i * Y * inner);
#pragma unroll
        for (int k = 0; k < V; k += 2) {
            most.v[k / 2] = 0xfc00fc00; // -inf
#pragma unroll
            for (int i = 0; i < EACH; ++i)
                if (has(i))
                    most.v[k / 2] = largerPair(most.v[k / 2], u[i].v[k / 2]);
            split(most.v[k / 2], m[k], m[k + 1]);
        }
#pragma unroll
        for (int k = 0; k < V; ++k) {
            m[k] = baseOf(m[k]);
            if (Y > 1)
                part[0][threadIdx.x / X][k][threadIdx.x % X] = m[k];
            // A thread of nothing but -inf adds nothing to the sum of others.
            base[k] = Y > 1 && m[k] == -__int_as_float(0x7f800000) ? 0.0f : m[k];
            s[k] = 0;
        }
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (has(i))
#pragma unroll
                for (int k = 0; k < V; k += 2) {
                    float a, b;
                    split(u[i].v[k / 2], a, b);
                    a = power(a, base[k]);
                    b = power(b, base[k + 1]);
                    s[k] += a;
                    s[k + 1] += b;
                    if (!LOG)
                        u[i].v[k / 2] = join(a, b);
                }
        if constexpr (Y > 1)
            shareBoth<V>(m, s, part);
        if (wanted != pack)
            return;
#pragma unroll
        for (int k = 0; k < V; ++k)
            s[k] = LOG ? fmaf(m[k], LN2, logf(s[k])) : between(fminf(base[k] - m[k], 0.0f), 0.0f) / s[k];
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            if (!has(i))
                continue;
            Pairs to;
#pragma unroll
            for (int k = 0; k < V; k += 2) {
                float a, b;
                split(u[i].v[k / 2], a, b);
                to.v[k / 2] = LOG ? join(a - s[k], b - s[k + 1]) : join(a * s[k], b * s[k + 1]);
            }
            *reinterpret_cast<Pairs*>(y + i * Y * inner) = to;
        }
        return;
    }
    float v[EACH][V], m[V], s[V];
#pragma unroll
    for (int k = 0; k < V; ++k) {
        m[k] = -__int_as_float(0x7f800000);
        s[k] = 0;
    }
    {
        Pack<T, V> u[EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (has(i))
                u[i] = *reinterpret_cast<Pack<T, V> const*>(x + i * Y * inner);
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (has(i))
#pragma unroll
                for (int k = 0; k < V; ++k) {
                    v[i][k] = load<float>(u[i].v[k]);
                    m[k] = larger(m[k], v[i][k]);
                }
    }
    share<V>(m, part[0], larger);
#pragma unroll
    for (int k = 0; k < V; ++k)
        m[k] = baseOf(m[k]);
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (has(i))
#pragma unroll
            for (int k = 0; k < V; ++k) {
                float const e = power(v[i][k], m[k]);
                s[k] += e;
                if (!LOG)
                    v[i][k] = e;
            }
    share<V>(s, part[Y == 1 ? 0 : 1], sum);
    if (wanted != pack)
        return;
#pragma unroll
    for (int k = 0; k < V; ++k)
        s[k] = LOG ? logf(s[k]) : 1 / s[k];
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        if (!has(i))
            continue;
        Pack<T, V> to;
#pragma unroll
        for (int k = 0; k < V; ++k)
            to.v[k] = store<T>(LOG ? v[i][k] - (IS_HALF ? m[k] * LN2 : m[k]) - s[k] : v[i][k] * s[k]);
        *reinterpret_cast<Pack<T, V>*>(y + i * Y * inner) = to;
    }
}
TW_KERNEL __launch_bounds__(X* Y, RESIDENT) softmax_columns_packs(const __grid_constant__ ColumnsParams p)
{
    columns<WIDTH>(p);
}
TW_KERNEL __launch_bounds__(X* Y, RESIDENT) softmax_columns(const __grid_constant__ ColumnsParams p)
{
    columns<1>(p);
}

} // namespace tw::ops::softmax
