// SPDX-License-Identifier: Apache-2.0
// A block for each row, which it reads three times.
//   type T
#pragma once

#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::product_norm {

TW_INLINE float sum(float a, float b)
{
    return a + b;
}
TW_KERNEL normalize(const __grid_constant__ Params p)
{
    __shared__ float scratch[32];
    T* const y = static_cast<T*>(p.y) + i64(blockIdx.x) * p.n;
    float mean = 0, variance = 0;
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x)
        mean += load<float>(y[i]);
    mean = blockReduce(mean, 0.0f, scratch, sum) / float(p.n);
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x) {
        float const v = load<float>(y[i]) - mean;
        variance += v * v;
    }
    float const deviation = sqrt(blockReduce(variance, 0.0f, scratch, sum) / float(p.n) + p.epsilon);
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x)
        y[i] = store<T>((load<float>(y[i]) - mean) / deviation * load<float>(static_cast<T const*>(p.gamma)[i]) +
                        load<float>(static_cast<T const*>(p.beta)[i]));
}

} // namespace tw::ops::product_norm
