// SPDX-License-Identifier: Apache-2.0
// Images by pixels: what the kernels of windows and of strips share. A pack is V channels.
//   type T; int R, S: the window; int STEP_H, STEP_W; int ROWS: of y, of a thread; int THREADS; bool AVERAGES; bool EXCLUDES:
//   padding does not count
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/pooling/pooling_params.h"

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
// Of i8 the same: 16 channels.

// Largest numbers in halves of words whose upper bytes they are: the odd bytes of a word as they lie, and the even ones.
struct LargestBytes
{
    static constexpr u32 UPPER = 0xFF00FF00u;
    u32 odd[4], even[4];
    static TW_INLINE Pack<u32, 4> nothing()
    {
        constexpr u32 FOUR = 0x80808080u;
        return {{FOUR, FOUR, FOUR, FOUR}};
    }
    TW_INLINE void set(Pack<u32, 4> const& x)
    {
        for (int i = 0; i < 4; ++i) {
            odd[i] = x.v[i] & UPPER;
            even[i] = x.v[i] << 8 & UPPER;
        }
    }
    TW_INLINE void add(Pack<u32, 4> const& x)
    {
        LargestBytes other;
        other.set(x);
        add(other);
    }
    TW_INLINE void add(LargestBytes const& x)
    {
        for (int i = 0; i < 4; ++i) {
            odd[i] = __vmaxs2(odd[i], x.odd[i]);
            even[i] = __vmaxs2(even[i], x.even[i]);
        }
    }
    TW_INLINE Pack<u32, 4> result(float) const
    {
        Pack<u32, 4> y;
        for (int i = 0; i < 4; ++i)
            y.v[i] = odd[i] | even[i] >> 8;
        return y;
    }
};
// Exact sums; one FP32 division, half to even.
struct SumOfBytes
{
    i32 v[16];
    static TW_INLINE Pack<u32, 4> nothing() { return {}; }
    TW_INLINE void set(Pack<u32, 4> const& x)
    {
        for (int i = 0; i < 16; ++i)
            v[i] = 0;
        add(x);
    }
    TW_INLINE void add(Pack<u32, 4> const& x)
    {
        for (int i = 0; i < 16; ++i)
            v[i] = __dp4a(i32(x.v[i / 4]), 1 << (i % 4 * 8), v[i]);
    }
    TW_INLINE void add(SumOfBytes const& x)
    {
        for (int i = 0; i < 16; ++i)
            v[i] += x.v[i];
    }
    TW_INLINE Pack<u32, 4> result(float count) const
    {
        Pack<u32, 4> y = {};
        for (int i = 0; i < 16; ++i) { // 0: padding alone
            i32 const average = count > 0 ? __float2int_rn(__fdiv_rn(float(v[i]), count)) : 0;
            y.v[i / 4] |= (u32(average) & 0xFFu) << (i % 4 * 8);
        }
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
