// SPDX-License-Identifier: Apache-2.0
// Products by wgmma, of operands that stay in shared memory: P [64 rows of 128 bytes] of each warpgroup, Q [256 rows of
// 128 bytes] of both. After wgmma().
#pragma once

#include "kernels/cuda/common/hopper.cuh"
#include "kernels/cuda/rates/numbers.cuh"

TW_KERNEL rateOfProducts(float* y, int repeats)
{
    constexpr int P_BYTES = 64 * 128, WORDS = (2 * P_BYTES + 256 * 128) / 4;
    extern __shared__ __align__(1024) u32 memory[];
    u32 const begin = (sharedAddress(memory) + 1023) & ~1023u;
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
        storeShared(begin + 4 * i, numbersAt(i));
    sharedFence();
    __syncthreads();
    u32 const p = begin + threadIdx.x / 128 * P_BYTES, q = begin + 2 * P_BYTES;
    float d[128];
    for (int i = 0; i < 128; ++i)
        d[i] = 0.0f;
    for (int r = 0; r < repeats; ++r) {
        wgmmaFence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            wgmma(d, descriptor(p + k * 32, 8192), descriptor(q + k * 32, 8192), 1);
        wgmmaCommit();
        wgmmaWait<1>();
    }
    wgmmaWait<0>();
    float sum = 0.0f;
    for (int i = 0; i < 128; ++i)
        sum += d[i];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
