// SPDX-License-Identifier: Apache-2.0
// Where the columns of each distance look is worked out by a kernel of its own, in double. A block has 32 columns of 32
// rows: what it reads of `from` are a few neighbours of 32 rows, which stay in L1.
//   type T
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/disentangled_attention/disentangled_attention_params.h"

namespace tw::ops::disentangled_attention {

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
    int const j = int(blockIdx.x) * 32 + int(threadIdx.x % 32), first = int(blockIdx.y) * 32 + int(threadIdx.x / 32);
    if (j >= p.s)
        return;
    i64 const width = 2 * i64(p.span);
    for (int b = blockIdx.z; b < p.batch; b += gridDim.z) {
        i64 const begin = i64(b) * p.s;
        T const* const from = static_cast<T const*>(p.from) + (begin + j) * width;
        for (int i = first; i < min(p.s, int(blockIdx.y) * 32 + 32); i += int(blockDim.x) / 32) {
            int const t = p.positions[i - j + p.s - 1];
            i64 const at = (begin + i) * p.s + j;
            float const sum = load<float>(static_cast<T const*>(p.content)[at]) +
                              load<float>(static_cast<T const*>(p.to)[(begin + i) * width + t]) + load<float>(from[t]);
            static_cast<T*>(p.y)[at] = store<T>(sum * p.factor);
        }
    }
}

} // namespace tw::ops::disentangled_attention
