// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

// Rounded to TF32, as the bits of a float.
TW_INLINE u32 toTf32(float v)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}

} // namespace tw::cuda
