// SPDX-License-Identifier: Apache-2.0
// Numbers to multiply: zeros would take less power and run faster.
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

// Two halves of 0.5 to 1 with any signs; as a float's bits, about 3e-5.
TW_INLINE u32 numbersAt(u32 i)
{
    u32 const h = (i + 1) * 2654435761u;
    return (h & 0x83ff83ffu) | 0x38003800u;
}

} // namespace tw::cuda
