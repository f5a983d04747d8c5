// SPDX-License-Identifier: Apache-2.0
// The kernel before one with LayerNorm.
#pragma once

#include "kernels/cuda/common/hopper.cuh"
#include "kernels/cuda/gemm/wgmma_params.h"

namespace tw::cuda::gemm_f16 {

TW_KERNEL fill(const __grid_constant__ FillArgs a)
{
    waitForPrevious();
    releaseDependents();
    i64 const i = i64(blockIdx.x) * 256 + threadIdx.x;
    if (i < a.count)
        a.parts[i] = ~u64(0);
}

} // namespace tw::cuda::gemm_f16
