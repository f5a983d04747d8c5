// SPDX-License-Identifier: Apache-2.0
// Quotients that become i8.
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

// What store<i8>() makes the same of as of x / scale in FP32, by multiplications where `scale` is one number for many x. Two
// corrections by the exact remainder give the rounded quotient itself; far beyond the ends, at infinities and NaN the
// first product says enough. Near the ends of the range of exponents remainders are not exact.
TW_INLINE float stepsOf(float x, float scale)
{
    if (!(scale >= 0x1p-100f && scale <= 0x1p100f))
        return __fdiv_rn(x, scale);
    float const by = __frcp_rn(scale), product = __fmul_rn(x, by);
    float q = __fmaf_rn(__fmaf_rn(-product, scale, x), by, product);
    q = __fmaf_rn(__fmaf_rn(-q, scale, x), by, q);
    return fabsf(product) < 1024.0f ? q : product;
}

} // namespace tw::cuda
