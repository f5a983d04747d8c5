// SPDX-License-Identifier: Apache-2.0
// Two neighbours of a mask of FP32.
#pragma once

#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda {

using Element = float;
TW_INLINE float valueOf(float v)
{
    return v;
}
typedef float2 MaskPair;
TW_INLINE MaskPair maskPair(float const* at, int key, int sk)
{
    if (key >= sk)
        return float2{0, 0};
    if constexpr (PAIRS)
        return *reinterpret_cast<float2 const*>(at + key);
    return float2{at[key], key + 1 < sk ? at[key + 1] : 0};
}
TW_INLINE float lowOf(MaskPair v)
{
    return v.x;
}
TW_INLINE float highOf(MaskPair v)
{
    return v.y;
}

} // namespace tw::cuda
