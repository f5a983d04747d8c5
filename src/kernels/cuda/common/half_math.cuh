// SPDX-License-Identifier: Apache-2.0
// Functions whose results are rounded to FP16: float to float, within a tenth of what that rounding may change (where
// results are small, gelu within 1.3e-5), in few enough instructions that memory stays the limit. Sine, cosine and
// tangent for |x| < 10^7. Polynomials are fitted for the least relative error. NaN goes through everywhere: comparisons
// with it are false.
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

TW_INLINE float approximatePower(float v)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}
TW_INLINE float approximateLog(float v)
{
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}
TW_INLINE float halfRecip(float v)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}
TW_INLINE float halfSqrt(float v)
{
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}
TW_INLINE float within(float v, float most)
{
    asm("min.NaN.f32 %0, %0, %1;\n\tmax.NaN.f32 %0, %0, %2;" : "+f"(v) : "f"(most), "f"(-most));
    return v;
}

TW_INLINE float halfExp(float v)
{
    return approximatePower(1.44269504f * v);
}
TW_INLINE float halfLog(float v)
{
    return 0.693147181f * approximateLog(v);
}
TW_INLINE float halfSigmoid(float v)
{
    return halfRecip(1 + approximatePower(-1.44269504f * v));
}
// 1.2e-5 of erf; after 2.85 it is 1 but for 5.6e-5.
TW_INLINE float halfErf(float v)
{
    float const x = within(v, 2.85f), z = x * x;
    float p = 6.15547009e-8f;
    p = p * z - 2.65691369e-6f;
    p = p * z + 5.10781756e-5f;
    p = p * z - 5.85719012e-4f;
    p = p * z + 4.55225399e-3f;
    p = p * z - 0.0258654747f;
    p = p * z + 0.112055138f;
    p = p * z - 0.375879586f;
    return x * (p * z + 1.12836552f);
}
// v Phi(v) with log2(Phi(v) / Phi(-v)) as v times a polynomial of v^2, fitted for |v| < 5.5: within 1.3e-5.
TW_INLINE float halfGelu(float v)
{
    float const z = fminf(v * v, 30.0f);
    float p = 1.98072667e-6f;
    p = p * z - 5.74707374e-5f;
    p = p * z - 5.95027173e-4f;
    p = p * z + 0.105841212f;
    p = p * z + 2.30164599f;
    return v * halfRecip(1 + approximatePower(-v * p));
}
// (-1)^k sin(r), |r| <= pi / 2; the lowest bit of `turns` is that of k.
TW_INLINE float halfSinOf(float r, float turns)
{
    float const z = r * r, p = ((-1.84881399e-4f * z + 8.31190031e-3f) * z - 0.16665554f) * z + 0.999999046f;
    return __int_as_float(__float_as_int(r * p) ^ (__float_as_int(turns) << 31));
}
// Added to a number below 2^22 in size, 1.5 2^23 leaves the nearest integer in the lowest bits. pi in two parts, both
// positive, so that -0 stays what it is.
constexpr float NEAREST = 12582912.0f;
TW_INLINE float halfSin(float v)
{
    float const turns = fmaf(v, 0.318309886f, NEAREST), k = turns - NEAREST;
    return halfSinOf(fmaf(k, -1.50995803e-7f, fmaf(k, -3.1415925f, v)), turns);
}
// -sin(v - (k + 1/2) pi) (-1)^k
TW_INLINE float halfCos(float v)
{
    float const turns = fmaf(v, 0.318309886f, -0.5f) + NEAREST, k = turns - NEAREST + 0.5f;
    return halfSinOf(fmaf(k, 1.50995803e-7f, fmaf(k, 3.1415925f, -v)), turns);
}
TW_INLINE float halfTan(float v)
{
    float const turns = fmaf(v, 0.636619772f, NEAREST), k = turns - NEAREST;
    float const r = fmaf(k, -7.54979013e-8f, fmaf(k, -1.57079625f, v)), z = r * r;
    float const t =
        r * ((((0.0438206792f * z + 0.0403983928f) * z + 0.136517212f) * z + 0.333079815f) * z + 1.00000322f);
    return __float_as_int(turns) & 1 ? -halfRecip(t) : t;
}
TW_INLINE float halfSinh(float v)
{
    float const z = v * v, e = halfExp(fabsf(v));
    float const near = v * (((2.03939897e-4f * z + 8.32991209e-3f) * z + 0.166667342f) * z + 1);
    return fabsf(v) < 1 ? near : copysignf(0.5f * e - 0.5f * halfRecip(e), v);
}
TW_INLINE float halfCosh(float v)
{
    float const e = halfExp(fabsf(v));
    return 0.5f * e + 0.5f * halfRecip(e);
}
TW_INLINE float halfTanh(float v)
{
    float const z = v * v;
    float const near = v * (((-0.0409294255f * z + 0.130578563f) * z - 0.333140403f) * z + 0.999997854f);
    return fabsf(v) < 0.6f ? near : copysignf(1 - 2 * halfRecip(1 + approximatePower(2.88539008f * fabsf(v))), v);
}
TW_INLINE float halfExpm1(float v)
{
    float const near = v * ((((8.33333377e-3f * v + 0.0416666679f) * v + 0.166666672f) * v + 0.5f) * v + 1);
    return fabsf(v) < 0.25f ? near : halfExp(v) - 1;
}
// log(1 + exp(v)): what v adds to its positive part is at most log 2.
TW_INLINE float halfSoftplus(float v)
{
    float const e = halfExp(-fabsf(v));
    return (v < 0 ? 0 : v) + (e < 0.02f ? e * ((0.333333343f * e - 0.5f) * e + 1) : halfLog(1 + e));
}
// asin(s) / s for z = s^2, |s| <= 1/2; beyond, asin(v) = pi / 2 - 2 asin(sqrt((1 - v) / 2)).
TW_INLINE float halfAsinOf(float z)
{
    return (((0.0505920313f * z + 0.0396778993f) * z + 0.0754715279f) * z + 0.166651309f) * z + 1.00000012f;
}
TW_INLINE float halfAsin(float v)
{
    bool const far = fabsf(v) > 0.5f;
    float const z = far ? 0.5f - 0.5f * fabsf(v) : v * v, s = far ? halfSqrt(z) : fabsf(v), p = s * halfAsinOf(z);
    return copysignf(far ? 1.57079633f - 2 * p : p, v);
}
TW_INLINE float halfAcos(float v)
{
    bool const far = fabsf(v) > 0.5f;
    float const z = far ? 0.5f - 0.5f * fabsf(v) : v * v, s = far ? halfSqrt(z) : v, p = s * halfAsinOf(z);
    float const y = far ? 2 * p : 1.57079633f - p;
    return v < -0.5f ? 3.14159265f - y : y;
}
TW_INLINE float halfAtan(float v)
{
    bool const far = fabsf(v) > 1;
    float const s = far ? halfRecip(fabsf(v)) : fabsf(v), z = s * s;
    float p = 7.86338281e-3f;
    p = p * z - 0.0370130353f;
    p = p * z + 0.0838712528f;
    p = p * z - 0.13487196f;
    p = p * z + 0.198814839f;
    p = p * z - 0.333265156f;
    p = s * (p * z + 0.999999344f);
    return copysignf(far ? 1.57079633f - p : p, v);
}
TW_INLINE float halfAsinh(float v)
{
    float const z = v * v;
    float const near = v * (((-0.0326538868f * z + 0.0732807145f) * z - 0.166584611f) * z + 0.999999404f);
    return fabsf(v) < 0.5f ? near : copysignf(halfLog(fabsf(v) + halfSqrt(z + 1)), v);
}
TW_INLINE float halfAcosh(float v)
{
    return v < 1 ? __int_as_float(0x7fffffff) : halfLog(v + halfSqrt(fmaf(v, v, -1.0f)));
}
TW_INLINE float halfAtanh(float v)
{
    float const z = v * v;
    float const near =
        v * ((((0.196053714f * z + 0.121837407f) * z + 0.201999575f) * z + 0.333268285f) * z + 1.00000036f);
    return fabsf(v) < 0.5f ? near : 0.5f * halfLog((1 + v) * halfRecip(1 - v));
}

} // namespace tw::cuda
