// SPDX-License-Identifier: Apache-2.0
// Images by pixels: what the kernels of windows and of strips share. A pack is V channels.
//   type T; int R, S: the window; int STEP_H, STEP_W; int ROWS: of y, of a thread; int THREADS; bool AVERAGES; bool EXCLUDES:
//   padding does not count
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/pooling/pooling_params.h"
#include "ops/pooling/pooling_pixels_bytes.cuh"

namespace tw::ops::pooling {

constexpr int V = 16 / int(sizeof(T));
constexpr bool IS_HALF = V == 8;
constexpr u32 LOWEST = IS_HALF ? 0xFC00FC00u : 0xFF800000u;
using Unit = Pack<u32, 4>;
TW_INLINE u32 larger(u32 a, u32 b) // of each half, where there are halves; NaN wins
{
    if constexpr (IS_HALF) {
        u32 v;
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
        return v;
    }
    float v;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(__uint_as_float(a)), "f"(__uint_as_float(b)));
    return __float_as_uint(v);
}
TW_INLINE f16 halfOf(u32 v, int which)
{
    f16 h;
    h.bits = u16(which ? v >> 16 : v);
    return h;
}
TW_INLINE float valueOf(Unit const& x, int i)
{
    return IS_HALF ? halfToFloat(halfOf(x.v[i / 2], i % 2)) : __uint_as_float(x.v[i % 4]);
}
TW_INLINE u32 wordOf(float const* v, float by)
{
    if constexpr (!IS_HALF)
        return __float_as_uint(v[0] * by);
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(v[1] * by), "f"(v[0] * by));
    return pair;
}
constexpr int SEEN = (ROWS - 1) * STEP_H + R; // rows of x
struct Largest
{
    Unit of;
    static TW_INLINE Unit nothing() { return Unit{{LOWEST, LOWEST, LOWEST, LOWEST}}; }
    TW_INLINE void set(Unit const& x) { of = x; }
    TW_INLINE void add(Unit const& x)
    {
        for (int i = 0; i < 4; ++i)
            of.v[i] = larger(of.v[i], x.v[i]);
    }
    TW_INLINE void add(Largest const& x) { add(x.of); }
    TW_INLINE Unit result(float) const { return of; }
};
struct Sum
{
    float v[V];
    static TW_INLINE Unit nothing() { return Unit{}; }
    TW_INLINE void set(Unit const& x)
    {
        for (int i = 0; i < V; ++i)
            v[i] = valueOf(x, i);
    }
    TW_INLINE void add(Unit const& x)
    {
        for (int i = 0; i < V; ++i)
            v[i] += valueOf(x, i);
    }
    TW_INLINE void add(Sum const& x)
    {
        for (int i = 0; i < V; ++i)
            v[i] += x.v[i];
    }
    TW_INLINE Unit result(float count) const
    {
        float by;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(count));
        if (!(count > 0))
            by = 0;
        Unit y;
        for (int i = 0; i < 4; ++i)
            y.v[i] = wordOf(&v[i * V / 4], by);
        return y;
    }
};
template <bool FIRST, class A, class B>
struct Either
{
    using Type = A;
};
template <class A, class B>
struct Either<false, A, B>
{
    using Type = B;
};
using Joined =
    Either<V == 16, Either<AVERAGES, SumOfBytes, LargestBytes>::Type, Either<AVERAGES, Sum, Largest>::Type>::Type;
// Positions of a window along one axis that count for the average.
TW_INLINE int counted(int start, int window, int in, int after)
{
    int const stop = start + window;
    return EXCLUDES ? max(min(stop, in) - max(start, 0), 0) : min(stop, in + after) - start;
}
TW_INLINE bool seesAny(int start, int window, int in)
{
    return min(start + window, in) > max(start, 0);
}

} // namespace tw::ops::pooling
