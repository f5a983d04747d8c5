// SPDX-License-Identifier: Apache-2.0
// FP32 rows as two TF32 numbers for each of theirs.
#pragma once

#include "kernels/cuda/common/hopper.cuh"
#include "kernels/cuda/common/tf32.cuh"
#include "kernels/cuda/gemm/wgmma_params.h"

namespace tw::cuda::gemm_f16 {

TW_KERNEL split(const __grid_constant__ SplitArgs s)
{
    waitForPrevious();
    releaseDependents();
    int const at = blockIdx.x * 256 + threadIdx.x, row = at / (s.padded / 4), k0 = at % (s.padded / 4) * 4;
    if (row >= s.rows)
        return;
    float4 v = {};
    if (k0 < s.k)
        v = *reinterpret_cast<float4 const*>(static_cast<float const*>(s.a) + row * s.lda + k0);
    float const x[4] = {v.x, v.y, v.z, v.w};
    Unit high, low;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        high.v[i] = toTf32(x[i]);
        low.v[i] = toTf32(x[i] - __uint_as_float(high.v[i]));
    }
    float* const to = static_cast<float*>(s.to) + i64(row) * s.padded * 2 + k0;
    *reinterpret_cast<Unit*>(to) = high;
    *reinterpret_cast<Unit*>(to + s.padded) = low;
}

} // namespace tw::cuda::gemm_f16
