// SPDX-License-Identifier: Apache-2.0
// A warp for each row of Narrow, whose units of 8 numbers its lanes hold in registers.
//   int NORM_UNITS: of a lane, at the most
#pragma once

#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::product_norm {

TW_INLINE float warpSum(float v)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffff, v, step);
    return v;
}
TW_KERNEL __launch_bounds__(128) normalize(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    u64 const row = u64(blockIdx.x) * 4 + threadIdx.x / 32;
    int const lane = threadIdx.x % 32, units = int(p.n) / 8;
    if (row >= p.rows)
        return;
    Unit* const y = reinterpret_cast<Unit*>(static_cast<Narrow*>(p.y) + row * p.n);
    Unit x[NORM_UNITS];
    float v[NORM_UNITS][8], mean = 0, variance = 0;
#pragma unroll
    for (int i = 0; i < NORM_UNITS; ++i)
        if (i * 32 + lane < units)
            x[i] = y[i * 32 + lane];
#pragma unroll
    for (int i = 0; i < NORM_UNITS; ++i)
        if (i * 32 + lane < units)
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                v[i][e] = e % 2 ? highHalf(x[i].v[e / 2]) : lowHalf(x[i].v[e / 2]);
                mean += v[i][e];
            }
    mean = warpSum(mean) / float(p.n);
#pragma unroll
    for (int i = 0; i < NORM_UNITS; ++i)
        if (i * 32 + lane < units)
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                v[i][e] -= mean;
                variance += v[i][e] * v[i][e];
            }
    float const scale = 1 / sqrtf(warpSum(variance) / float(p.n) + p.epsilon);
#pragma unroll
    for (int i = 0; i < NORM_UNITS; ++i)
        if (i * 32 + lane < units) {
            Unit const g = static_cast<Unit const*>(p.gamma)[i * 32 + lane],
                       b = static_cast<Unit const*>(p.beta)[i * 32 + lane];
#pragma unroll
            for (int e = 0; e < 4; ++e)
                x[i].v[e] = packHalves(v[i][e * 2] * scale * lowHalf(g.v[e]) + lowHalf(b.v[e]),
                                       v[i][e * 2 + 1] * scale * highHalf(g.v[e]) + highHalf(b.v[e]));
            y[i * 32 + lane] = x[i];
        }
}

} // namespace tw::ops::product_norm
