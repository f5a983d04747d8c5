// SPDX-License-Identifier: Apache-2.0
// What kernels of matrix instructions begin with: halves, activations, shared memory, asynchronous copies, fragments.
#pragma once

#include "kernels/cuda/common/async_copies.cuh"
#include "kernels/cuda/common/dependence.cuh"
#include "kernels/cuda/common/fragments.cuh"

namespace tw::cuda {

struct alignas(16) Unit
{
    u32 v[4];
};

// Two of Narrow in a register, the first one low.
TW_INLINE u32 packHalves(float low, float high)
{
    u32 v;
    asm("cvt.rn." TW_NARROW_PTX "x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}
TW_INLINE float lowHalf(u32 v)
{
    Narrow h;
    h.bits = u16(v);
    return halfToFloat(h);
}
TW_INLINE float highHalf(u32 v)
{
    Narrow h;
    h.bits = u16(v >> 16);
    return halfToFloat(h);
}

// NaN goes through.
TW_INLINE float maximumOf(float a, float b)
{
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
// Results below 2^-126 are 0: without .ftz each takes four instructions, not one.
TW_INLINE float powerOf2(float v)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}
TW_INLINE float reciprocalOf(float v)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}
TW_INLINE float sigmoidOf(float v)
{
    return reciprocalOf(1.0f + powerOf2(-1.44269504f * v));
}
TW_INLINE float tanhOf(float v)
{
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
} // within 2^-11
// v Phi(v) = v / 2 (1 + tanh u) with u as v times a polynomial of v^2, fitted for |v| < 5.5 (beyond, Phi(-v) < 2e-8) to
// within 2.5e-5; what tanhOf() adds is less than what FP16 rounds off at v. One special function: an exponential and a
// reciprocal would be two, and they are what an epilogue of GELU waits for.
TW_INLINE float geluErfOf(float v)
{
    float const w = fminf(v * v, 30.0f), half = 0.5f * v;
    return fmaf(half, tanhOf(v * (0.797507890f + w * (0.0370056415f + w * -3.51516705e-4f))), half);
}
// v Phi(v) for results that are rounded to steps of any size: max(v, 0) - |v| Phi(-|v|), with log2 Phi(-a) as a polynomial
// of a; one special function. Beyond 6 what is taken off is less than 1e-8. NaN gives that.
TW_INLINE float geluByExponent(float v, float c1, float c2, float c3, float c4, float c5)
{
    float const a = fminf(fabsf(v), 6.0f);
    return fmaf(-a, powerOf2(-1.0f + a * (c1 + a * (c2 + a * (c3 + a * (c4 + a * c5))))), fmaxf(v, 0.0f));
}
// Within 4e-7 |v|.
TW_INLINE float geluErfByExponent(float v)
{
    return geluByExponent(v, -1.15109134f, -0.459254712f, -0.0525611676f, 0.00739746494f, -0.000520448724f);
}
// Within 3e-6 |v|.
TW_INLINE float geluTanhByExponent(float v)
{
    return geluByExponent(v, -1.15106547f, -0.45890829f, -0.0536151566f, 0.011320414f, -0.00236326549f);
}
TW_INLINE float geluTanhOf(float v)
{
    float const half = 0.5f * v;
    return fmaf(half, tanhOf(v * (0.797884561f + 0.0356774081f * v * v)), half);
}

TW_INLINE void storeShared(u32 at, u32 v)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
TW_INLINE u32 loadShared(u32 at)
{
    u32 v;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}
TW_INLINE void loadShared(u32 at, float& a, float& b)
{
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(at) : "memory");
}
TW_INLINE void storeShared(u32 at, Unit const& u)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(u.v[0]), "r"(u.v[1]), "r"(u.v[2]),
                 "r"(u.v[3])
                 : "memory");
}
TW_INLINE Unit loadSharedUnit(u32 at)
{
    Unit u;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(u.v[0]), "=r"(u.v[1]), "=r"(u.v[2]), "=r"(u.v[3])
                 : "r"(at)
                 : "memory");
    return u;
}

} // namespace tw::cuda
