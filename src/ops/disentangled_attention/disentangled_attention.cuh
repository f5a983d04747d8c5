// SPDX-License-Identifier: Apache-2.0
// Where the columns of each distance look is worked out by a kernel of its own, in double. A block has 32 columns of 32
// rows: what it reads of `from` are a few neighbours of 32 rows, which come through shared memory, since threads that stand
// side by side read them across rows.
//   type T
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/disentangled_attention/disentangled_attention_params.h"

namespace tw::ops::disentangled_attention {

constexpr int kStaged = 64; // neighbours; beyond (few tokens more than half a span) they are read where they lie

TW_KERNEL disentangled_attention_positions(const __grid_constant__ Params p)
{
    int const at = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= 2 * p.s - 1)
        return;
    int const distance = at - (p.s - 1), mid = p.span / 2, r = abs(distance);
    i64 bucket = r;
    if (r > mid && mid > 0) {
        double const ratio =
            log(double(r) / double(mid)) * double(mid - 1) / log(double(p.s - 1) / double(mid)) * (1 - 1e-7);
        bucket = i64(ceil(ratio)) + mid;
    }
    i64 const t = (distance < 0 ? -bucket : bucket) + p.span;
    p.positions[at] = int(t < 0 ? 0 : t > 2 * i64(p.span) - 1 ? 2 * i64(p.span) - 1 : t);
}

TW_KERNEL disentangled_attention(const __grid_constant__ Params p)
{
    __shared__ T tile[32][kStaged + 2]; // of `from`: rows j, columns from `least` on
    int const i0 = int(blockIdx.y) * 32, j0 = int(blockIdx.x) * 32, lane = int(threadIdx.x % 32),
              warp = int(threadIdx.x / 32);
    int const rows = min(p.s - i0, 32), columns = min(p.s - j0, 32), warps = int(blockDim.x / 32);
    int const* const positions = p.positions + p.s - 1;
    int const least = positions[i0 - j0 - columns + 1], count = positions[i0 + rows - 1 - j0] - least + 1;
    bool const isStaged = count <= kStaged;
    i64 const width = 2 * i64(p.span);
    for (int b = blockIdx.z; b < p.batch; b += gridDim.z) {
        i64 const begin = i64(b) * p.s;
        T const* const from = static_cast<T const*>(p.from) + (begin + j0) * width;
        for (int j = warp; isStaged && j < columns; j += warps)
            for (int k = lane; k < count; k += 32)
                tile[j][k] = from[j * width + least + k];
        __syncthreads();
        for (int i = warp; i < rows && lane < columns; i += warps) {
            int const t = positions[i0 + i - j0 - lane];
            i64 const row = begin + i0 + i, at = row * p.s + j0 + lane;
            float const sum = load<float>(static_cast<T const*>(p.content)[at]) +
                              load<float>(static_cast<T const*>(p.to)[row * width + t]) +
                              load<float>(isStaged ? tile[lane][t - least] : from[lane * width + t]);
            static_cast<T*>(p.y)[at] = store<T>(sum * p.factor);
        }
        __syncthreads();
    }
}

} // namespace tw::ops::disentangled_attention
