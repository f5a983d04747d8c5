// SPDX-License-Identifier: Apache-2.0
// Quotients by numbers that many share.
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

// Quotients x / scale of which store<i8>() makes the same as of those in FP32, for a positive finite scale; without a branch, so
// that what depends on the scale alone is computed once. The reciprocal is within one unit of its last place. A scale
// whose exponent is near an end is lifted to the middle, and x with it: what x loses there is far below half a step.
struct Steps
{
    float lift, scale, by;
    TW_INLINE explicit Steps(float given) : lift(given < 0x1p-100f ? 0x1p100f : given > 0x1p100f ? 0x1p-100f : 1.0f)
    {
        scale = given * lift;
        float near;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(scale));
        by = __fmaf_rn(__fmaf_rn(-near, scale, 1.0f), near, near);
    }
    // Two corrections by the exact remainder give the rounded quotient itself; far beyond the ends, at infinities and NaN the
    // first product says enough.
    TW_INLINE float operator()(float given) const
    {
        float const x = given * lift, product = __fmul_rn(x, by);
        float q = __fmaf_rn(__fmaf_rn(-product, scale, x), by, product);
        q = __fmaf_rn(__fmaf_rn(-q, scale, x), by, q);
        return fabsf(product) < 1024.0f ? q : product;
    }
};

// What store<i8>() makes the same of as of x / scale in FP32, whatever the scale is. Near the ends of the range of exponents
// remainders are not exact.
TW_INLINE float stepsOf(float x, float scale)
{
    if (!(scale >= 0x1p-100f && scale <= 0x1p100f))
        return __fdiv_rn(x, scale);
    float const by = __frcp_rn(scale), product = __fmul_rn(x, by);
    float q = __fmaf_rn(__fmaf_rn(-product, scale, x), by, product);
    q = __fmaf_rn(__fmaf_rn(-q, scale, x), by, q);
    return fabsf(product) < 1024.0f ? q : product;
}

// x / by, rounded, for a `by` from 2^-30 to 2^30 (or below 0) whose rounded reciprocal is known: as above, where remainders
// are exact; 0, infinities and NaN are those of the product.
TW_INLINE float quotientOf(float x, float by, float reciprocal)
{
    float const product = __fmul_rn(x, reciprocal), size = fabsf(x);
    if (size >= 0x1p-60f && size <= 0x1p60f) {
        float const q = __fmaf_rn(__fmaf_rn(-product, by, x), reciprocal, product);
        return __fmaf_rn(__fmaf_rn(-q, by, x), reciprocal, q);
    }
    return size > 0 && size <= 0x1.fffffep127f ? __fdiv_rn(x, by) : product;
}

} // namespace tw::cuda
