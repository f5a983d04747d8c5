// SPDX-License-Identifier: Apache-2.0
// What most sources begin with: storage types, conversions, index arithmetic, reductions.
//   bool kWideIndices   counts elements in 64 bits, not in 32
#pragma once

#include "kernels/cuda/common/dependence.cuh"
#include "kernels/cuda/common/params.h"

namespace tw::cuda {

struct b8
{
    unsigned char v;
};
struct unit1
{
    unsigned char v;
};
struct unit2
{
    unsigned short v;
};
struct unit4
{
    unsigned v;
};
struct alignas(8) unit8
{
    unsigned v[2];
};
struct alignas(16) unit16
{
    unsigned v[4];
};

template <bool Wide>
struct Indices
{
    using Index = u32;
    using Offset = i32;
};
template <>
struct Indices<true>
{
    using Index = u64;
    using Offset = i64;
};
using idx = Indices<kWideIndices>::Index;
using off = Indices<kWideIndices>::Offset;
TW_INLINE idx divide(idx n, Div const& v)
{
    if constexpr (kWideIndices)
        return n / v.d;
    else
        return (__umulhi(n, v.m) + n) >> v.s;
}

// Offsets of element i in each operand; only the last R dimensions differ from 1.
template <int R, int K>
TW_INLINE void locate(Loop<K> const& l, idx i, off (&at)[K])
{
#pragma unroll
    for (int k = 0; k < K; ++k)
        at[k] = 0;
#pragma unroll
    for (int r = 7; r >= 8 - R; --r) {
        idx const q = r > 8 - R ? divide(i, l.dim[r]) : 0;
        off const c = off(i - q * idx(l.dim[r].d));
#pragma unroll
        for (int k = 0; k < K; ++k)
            at[k] += c * off(l.stride[k][r]);
        i = q;
    }
}
TW_INLINE idx threadIndex()
{
    return idx(blockIdx.x) * blockDim.x + threadIdx.x;
}

TW_INLINE f16 doubleToHalf(double d)
{
    f16 h;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h.bits) : "d"(d));
    return h;
}

template <class T>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<f32> = true;
template <>
constexpr bool kIsFloat<f16> = true;
template <>
constexpr bool kIsFloat<bf16> = true;

template <class C>
struct To;
template <>
struct To<float>
{
    static TW_INLINE float from(f32 v) { return v; }
    static TW_INLINE float from(f16 v) { return halfToFloat(v); }
    static TW_INLINE float from(bf16 v) { return halfToFloat(v); }
    static TW_INLINE float from(i8 v) { return v; }
    static TW_INLINE float from(i32 v) { return float(v); }
    static TW_INLINE float from(b8 v) { return v.v != 0; }
    static TW_INLINE float from(u8 v) { return v; }
};
template <>
struct To<double>
{
    static TW_INLINE double from(f32 v) { return v; }
    static TW_INLINE double from(f16 v) { return halfToFloat(v); }
    static TW_INLINE double from(bf16 v) { return halfToFloat(v); }
    static TW_INLINE double from(i8 v) { return v; }
    static TW_INLINE double from(i32 v) { return v; }
    static TW_INLINE double from(b8 v) { return v.v != 0; }
    static TW_INLINE double from(u8 v) { return v; }
};
template <>
struct To<int>
{
    static TW_INLINE int from(i8 v) { return v; }
    static TW_INLINE int from(i32 v) { return v; }
    static TW_INLINE int from(b8 v) { return v.v != 0; }
    static TW_INLINE int from(u8 v) { return v; }
};
template <class C, class T>
TW_INLINE C load(T v)
{
    return To<C>::from(v);
}

template <class T>
struct From;
template <>
struct From<f32>
{
    static TW_INLINE f32 value(float v) { return v; }
    static TW_INLINE f32 value(double v) { return float(v); }
    static TW_INLINE f32 value(int v) { return float(v); }
};
template <>
struct From<f16>
{
    static TW_INLINE f16 value(float v) { return floatToHalf(v); }
    static TW_INLINE f16 value(double v) { return doubleToHalf(v); }
    static TW_INLINE f16 value(int v) { return doubleToHalf(double(v)); }
};
template <>
struct From<bf16>
{
    static TW_INLINE bf16 value(float v) { return floatToBf16(v); }
    static TW_INLINE bf16 value(double v) { return floatToBf16(float(v)); }
    static TW_INLINE bf16 value(int v) { return floatToBf16(float(v)); }
};
template <>
struct From<i8>
{ // half to even, saturated, NaN gives 0
    static TW_INLINE i8 value(double v) { return v != v ? i8(0) : i8(fmin(fmax(rint(v), -128.0), 127.0)); }
    static TW_INLINE i8 value(float v)
    {
        i32 y;
        asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(v));
        return v != v ? i8(0) : i8(y);
    }
    static TW_INLINE i8 value(int v) { return i8(v < -128 ? -128 : v > 127 ? 127 : v); }
};
template <>
struct From<i32>
{
    static TW_INLINE i32 value(int v) { return v; }
};
template <>
struct From<b8>
{
    static TW_INLINE b8 value(bool v)
    {
        b8 b;
        b.v = v;
        return b;
    }
    static TW_INLINE b8 value(int v) { return value(v != 0); }
};
template <>
struct From<u8>
{
    static TW_INLINE u8 value(int v) { return u8(v); }
};
template <class T, class C>
TW_INLINE T store(C v)
{
    return From<T>::value(v);
}

template <class T, int N>
struct alignas(sizeof(T) * N) Pack
{
    T v[N];
};

template <class C, class F>
TW_INLINE C warpReduce(C v, F f)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1)
        v = f(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}
// All threads of the block (a multiple of 32, at most 1024) get the result; `scratch` holds 32 values.
template <class C, class F>
TW_INLINE C blockReduce(C v, C identity, C* scratch, F f)
{
    v = warpReduce(v, f);
    __syncthreads();
    if ((threadIdx.x & 31) == 0)
        scratch[threadIdx.x >> 5] = v;
    __syncthreads();
    v = (threadIdx.x & 31) < blockDim.x / 32 ? scratch[threadIdx.x & 31] : identity;
    return warpReduce(v, f);
}

} // namespace tw::cuda
