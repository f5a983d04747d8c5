// SPDX-License-Identifier: Apache-2.0
// Results of attention kernels of FP16 on their way to shared memory, two neighbours at once: as FP16, or as the
// integers that quantize would make of that.
#pragma once

#include "kernels/cuda/common/bytes.cuh"
#include "kernels/cuda/common/matrix.cuh"
#include "kernels/cuda/common/steps.cuh"

namespace tw::cuda {

template <bool IS_INTEGER>
TW_INLINE Steps stepsOf(float const* step)
{
    if constexpr (IS_INTEGER)
        return Steps(__ldg(step));
    else
        return Steps(1);
}
TW_INLINE void storeResults(u32 at, float low, float high, Steps const&, f16)
{
    storeShared(at, packHalves(low, high));
}
TW_INLINE void storeResults(u32 at, float low, float high, Steps const& steps, i8)
{
    u32 const halves = packHalves(low, high);
    u16 const bytes = u16(toBytes(steps(lowHalf(halves)), steps(highHalf(halves))));
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(bytes) : "memory");
}

} // namespace tw::cuda
