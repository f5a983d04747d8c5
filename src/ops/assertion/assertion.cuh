// SPDX-License-Identifier: Apache-2.0
// One block: shape tensors are small.
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/assertion/assertion_params.h"

namespace tw::ops::assertion {

TW_KERNEL assertion(const __grid_constant__ Params p)
{
    __shared__ u64 scratch[32];
    u64 first = p.count;
    for (u64 i = threadIdx.x; i < p.count; i += blockDim.x)
        if (!static_cast<u8 const*>(p.x)[i] && i < first)
            first = i;
    first = blockReduce(first, p.count, scratch, [](u64 a, u64 b) { return a < b ? a : b; });
    if (threadIdx.x == 0)
        *static_cast<u64*>(p.first) = first;
}

} // namespace tw::ops::assertion
