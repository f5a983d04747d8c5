// SPDX-License-Identifier: Apache-2.0
// What every piece of device code begins with.
#pragma once

#include "kernels/cuda/common/types.h"

#define TW_INLINE __device__ __forceinline__
#define TW_KERNEL extern "C" __global__ void

using namespace tw::cuda;

namespace tw::cuda {

TW_INLINE float halfToFloat(f16 h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
    return f;
}
TW_INLINE f16 floatToHalf(float f)
{
    f16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    return h;
}

} // namespace tw::cuda
