// SPDX-License-Identifier: Apache-2.0
// What slices are reduced by.
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::ops::softmax {

TW_INLINE float lowest()
{
    return -__int_as_float(0x7f800000);
}
TW_INLINE float larger(float a, float b)
{
    return fmaxf(a, b); // NaN shows in the sums
}
TW_INLINE float sum(float a, float b)
{
    return a + b;
}

} // namespace tw::ops::softmax
