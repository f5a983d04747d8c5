// SPDX-License-Identifier: Apache-2.0
// Two neighbours of a mask of FP16.
#pragma once

#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda {

using Element = f16;
TW_INLINE float valueOf(f16 v)
{
    return lowHalf(v.bits);
}
typedef u32 MaskPair; // the first one low
TW_INLINE MaskPair maskPair(f16 const* at, int key, int sk)
{
    if (key >= sk)
        return 0;
    if constexpr (PAIRS)
        return *reinterpret_cast<u32 const*>(at + key);
    return u32(at[key].bits) | (key + 1 < sk ? u32(at[key + 1].bits) << 16 : 0);
}
TW_INLINE float lowOf(MaskPair v)
{
    return lowHalf(v);
}
TW_INLINE float highOf(MaskPair v)
{
    return highHalf(v);
}

} // namespace tw::cuda
