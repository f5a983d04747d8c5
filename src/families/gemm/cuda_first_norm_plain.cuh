// SPDX-License-Identifier: Apache-2.0
// A block for each row, which it reads three times.
//   type T; bool FIRST_RMS
#pragma once

#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::first_norm {

TW_INLINE float sum(float a, float b)
{
    return a + b;
}
TW_KERNEL normalizeFirst(const __grid_constant__ Params p)
{
    __shared__ float scratch[32];
    T const* const a = static_cast<T const*>(p.a) + i64(blockIdx.x) * p.k;
    T* const to = static_cast<T*>(p.to) + i64(blockIdx.x) * p.k;
    float mean = 0, squares = 0;
    if constexpr (!FIRST_RMS) {
        for (idx i = threadIdx.x; i < p.k; i += blockDim.x)
            mean += load<float>(a[i]);
        mean = blockReduce(mean, 0.0f, scratch, sum) / float(p.k);
    }
    for (idx i = threadIdx.x; i < p.k; i += blockDim.x)
        squares += (load<float>(a[i]) - mean) * (load<float>(a[i]) - mean);
    float const deviation = sqrt(blockReduce(squares, 0.0f, scratch, sum) / float(p.k) + p.epsilon);
    for (idx i = threadIdx.x; i < p.k; i += blockDim.x)
        to[i] = store<T>((load<float>(a[i]) - mean) / deviation);
}

} // namespace tw::ops::first_norm
