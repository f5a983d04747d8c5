// SPDX-License-Identifier: Apache-2.0
// Images in kHWC8. A block has CHANNELS channels of an image: 8 lanes for them, the others along the pixels. Where blocks
// share an image, a second kernel adds up.
//   int THREADS: of a block; what reduce_arithmetic.cuh wants
#pragma once

#include "kernels/cuda/common/matrix.cuh"
#include "ops/reduce/reduce_arithmetic.cuh"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

using Args = PixelsParams<T>;
constexpr int V = 16 / int(sizeof(T)), CHANNELS = 8 * V, STEP = THREADS / 8, WARPS = THREADS / 32, AHEAD = 8;
// Number i of a pack.
TW_INLINE float valueOf(Unit const& u, int i)
{
    return V == 4 ? __uint_as_float(u.v[i]) : i % 2 ? highHalf(u.v[i / 2]) : lowHalf(u.v[i / 2]);
}
template <class Y>
TW_INLINE Y rounded(float v)
{
    if constexpr (sizeof(Y) == 4)
        return v;
    else
        return floatToHalf(v);
}
TW_INLINE T resultOf(Args const& p, float v)
{
    return rounded<T>(result(v, float(p.pixels)));
}
TW_KERNEL __launch_bounds__(THREADS) reduce(const __grid_constant__ Args p)
{
    __shared__ float part[WARPS][CHANNELS];
    waitForPrevious();
    releaseDependents();
    int const rank = blockIdx.x % p.split, block = blockIdx.x / p.split;
    int const image = block / p.chunks, c0 = (block - image * p.chunks) * CHANNELS;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, c = c0 + lane % 8 * V;
    float v[V];
#pragma unroll
    for (int e = 0; e < V; ++e)
        v[e] = identity();
    T const* const x = p.x + i64(image) * p.pixels * p.pixel + c;
    int const first = int(i64(p.pixels) * rank / p.split), last = int(i64(p.pixels) * (rank + 1) / p.split);
    if (c < p.channels) {
        for (int k = first + threadIdx.x / 8; k < last; k += STEP * AHEAD) {
            Unit u[AHEAD];
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
                if (k + j * STEP < last)
                    u[j] = *reinterpret_cast<Unit const*>(x + i64(k + j * STEP) * p.pixel);
#pragma unroll
            for (int j = 0; j < AHEAD; ++j)
                if (k + j * STEP < last)
#pragma unroll
                    for (int e = 0; e < V; ++e)
                        v[e] = join(v[e], valueOf(u[j], e));
        }
    }
#pragma unroll
    for (int e = 0; e < V; ++e) {
        v[e] = join(v[e], __shfl_xor_sync(0xffffffffu, v[e], 8));
        v[e] = join(v[e], __shfl_xor_sync(0xffffffffu, v[e], 16));
        if (lane < 8)
            part[warp][lane * V + e] = v[e];
    }
    __syncthreads();
    for (int t = threadIdx.x; t < CHANNELS && c0 + t < p.channels; t += THREADS) {
        float sum = part[0][t];
#pragma unroll
        for (int w = 1; w < WARPS; ++w)
            sum = join(sum, part[w][t]);
        if (p.split > 1)
            p.parts[(i64(image) * p.split + rank) * p.channels + c0 + t] = sum;
        else
            p.y[i64(image) * p.channels + c0 + t] = resultOf(p, sum);
    }
}
// A thread for each result.
TW_KERNEL __launch_bounds__(CHANNELS) finish(const __grid_constant__ Args p)
{
    waitForPrevious();
    releaseDependents();
    int const image = blockIdx.x / p.chunks, c = (blockIdx.x - image * p.chunks) * CHANNELS + threadIdx.x;
    if (c >= p.channels)
        return;
    float sum = identity();
#pragma unroll 8
    for (int r = 0; r < p.split; ++r)
        sum = join(sum, p.parts[(i64(image) * p.split + r) * p.channels + c]);
    p.y[i64(image) * p.channels + c] = resultOf(p, sum);
}

} // namespace tw::ops::reduce
