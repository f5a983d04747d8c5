// SPDX-License-Identifier: Apache-2.0
// A block for each row of Narrow, whose units of 8 numbers its threads hold in registers.
//   int FIRST_THREADS; FIRST_UNITS: of a thread, at the most; bool FIRST_RMS
#pragma once

#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::first_norm {

// Of all threads, for all of them.
TW_INLINE float sumOfBlock(float v, float* parts)
{
    constexpr int WARPS = FIRST_THREADS / 32;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w)
        v += parts[w];
    return v;
}
TW_KERNEL __launch_bounds__(FIRST_THREADS) normalizeFirst(const __grid_constant__ Params p)
{
    __shared__ float parts[2][FIRST_THREADS / 32];
    int const units = int(p.k) / 8;
    u64 const row = u64(blockIdx.x) * p.k;
    releaseDependents();
    waitForPrevious();
    auto const* const from = reinterpret_cast<Unit const*>(static_cast<Narrow const*>(p.a) + row);
    auto* const to = reinterpret_cast<Unit*>(static_cast<Narrow*>(p.to) + row);
    Unit x[FIRST_UNITS];
    float v[FIRST_UNITS][8], mean = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < FIRST_UNITS; ++i)
        if (int const u = i * FIRST_THREADS + threadIdx.x; u < units)
            x[i] = from[u];
#pragma unroll
    for (int i = 0; i < FIRST_UNITS; ++i)
        if (i * FIRST_THREADS + int(threadIdx.x) < units)
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                v[i][e] = e % 2 ? highHalf(x[i].v[e / 2]) : lowHalf(x[i].v[e / 2]);
                mean += v[i][e];
            }
    mean = FIRST_RMS ? 0 : sumOfBlock(mean, parts[0]) / float(p.k);
#pragma unroll
    for (int i = 0; i < FIRST_UNITS; ++i)
        if (i * FIRST_THREADS + int(threadIdx.x) < units)
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                v[i][e] -= mean;
                squares += v[i][e] * v[i][e];
            }
    float const scale = 1 / sqrtf(sumOfBlock(squares, parts[1]) / float(p.k) + p.epsilon);
#pragma unroll
    for (int i = 0; i < FIRST_UNITS; ++i)
        if (int const u = i * FIRST_THREADS + threadIdx.x; u < units) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                x[i].v[e] = packHalves(v[i][e * 2] * scale, v[i][e * 2 + 1] * scale);
            to[u] = x[i];
        }
}

} // namespace tw::ops::first_norm
