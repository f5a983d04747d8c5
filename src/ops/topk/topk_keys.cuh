// SPDX-License-Identifier: Apache-2.0
// Keys of elements: of two, the larger one comes first in the result. No two elements of a slice have the same; 0 is none.
//   bool kLargest
#pragma once

#include "kernels/cuda/common/order.cuh"

namespace tw::ops::topk {

// NaN is larger than all, 0 and -0 are equal, and of equal elements the lower index comes first.
TW_INLINE u64 keyOf(float v, u32 index)
{
    u32 const given = __float_as_uint(v), bits = v != v ? 0x7fffffffu : given << 1 == 0 ? 0 : given;
    u32 const order = orderOfBits(bits);
    return orderedKey(kLargest ? order : ~order, index);
}

} // namespace tw::ops::topk
