// SPDX-License-Identifier: Apache-2.0
// One block goes through x in order: plain. First it counts; when n is known it writes.
//   type T, Number: what is compared with 0
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/non_zero/non_zero_params.h"

namespace tw::ops::non_zero {

TW_KERNEL non_zero(const __grid_constant__ Params p)
{
    __shared__ u32 before[32];
    u64 column = 0; // of the first element of this round
    u32 const lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u64 first = 0; first < p.count; first += blockDim.x) {
        u64 const i = first + threadIdx.x;
        bool const hit = i < p.count && load<Number>(static_cast<T const*>(p.x)[i]) != 0;
        u32 const votes = __ballot_sync(0xffffffffu, hit);
        __syncthreads();
        if (lane == 0)
            before[warp] = __popc(votes);
        __syncthreads();
        u32 at = __popc(votes & ((1u << lane) - 1)), all = 0;
        for (u32 w = 0; w < 32; ++w) {
            if (w < warp)
                at += before[w];
            all += before[w];
        }
        if (hit && p.n) {
            idx rest = idx(i);
            for (int d = p.rank - 1; d >= 0; --d) {
                Div const& size = p.dim[8 - p.rank + d];
                idx const q = divide(rest, size);
                static_cast<i32*>(p.y)[u64(d) * p.n + column + at] = i32(rest - q * idx(size.d));
                rest = q;
            }
        }
        column += all;
    }
    if (!p.n && threadIdx.x == 0)
        *static_cast<u64*>(p.found) = column;
}

} // namespace tw::ops::non_zero
