// SPDX-License-Identifier: Apache-2.0
// Keys of scored elements: of two, the larger one has the larger score, or the same and the lower index.
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::cuda {

// Of a float's bits: larger for larger numbers, and all numbers above 0.
TW_INLINE u32 orderOfBits(u32 bits)
{
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
// -0 is 0.
TW_INLINE u32 orderOf(float v)
{
    return orderOfBits(__float_as_uint(v + 0.0f));
}
TW_INLINE u64 orderedKey(u32 order, u32 index)
{
    return u64(order) << 32 | (0xffffffffu - index);
}
TW_INLINE u32 indexOfKey(u64 key)
{
    return 0xffffffffu - u32(key);
}

} // namespace tw::cuda
