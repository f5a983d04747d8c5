// SPDX-License-Identifier: Apache-2.0
// A block for a line, or a thread. Floats are summed in double: a line may be long.
//   types Element; Number: of sums, double or u32; Loaded: what elements are loaded as, double or int
//   bool kReverse, kExclusive
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/cumulative_sum/cumulative_sum_params.h"

namespace tw::ops::cumulative_sum {

constexpr int kEach = 4, kRound = 256 * kEach;
TW_INLINE idx lineBegin(Params const& p, idx line)
{
    idx const o = divide(line, p.inner), inner = idx(p.inner.d);
    return o * idx(p.length) * inner + (line - o * inner);
}
TW_INLINE idx placeOf(Params const& p, idx begin, idx i)
{
    return begin + (kReverse ? idx(p.length) - 1 - i : i) * idx(p.inner.d);
}
TW_INLINE void put(Params const& p, idx at, Number& sum, Number v)
{
    Number const before = sum;
    sum = before + v;
    static_cast<Element*>(p.y)[at] = store<Element>(Loaded(kExclusive ? before : sum));
}
TW_INLINE Number get(Params const& p, idx at)
{
    return Number(load<Loaded>(static_cast<Element const*>(p.x)[at]));
}
TW_KERNEL __launch_bounds__(256) cumulative_sum_blocks(const __grid_constant__ Params p)
{
    __shared__ Number warps[8];
    waitForPrevious();
    releaseDependents();
    idx const begin = lineBegin(p, blockIdx.x), length = idx(p.length);
    u32 const lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    Number carry = 0;
    for (idx first = 0; first < length; first += kRound) {
        idx const mine = first + threadIdx.x * kEach;
        Number v[kEach], own = 0;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            v[k] = mine + k < length ? get(p, placeOf(p, begin, mine + k)) : Number(0);
            own += v[k];
        }
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            Number const other = __shfl_up_sync(0xffffffffu, own, d);
            if (lane >= d)
                own += other;
        }
        if (lane == 31)
            warps[warp] = own;
        Number sum = __shfl_up_sync(0xffffffffu, own, 1);
        if (lane == 0)
            sum = 0;
        __syncthreads();
        Number all = carry;
#pragma unroll
        for (int w = 0; w < 8; ++w) {
            if (w == warp)
                sum += all;
            all += warps[w];
        }
        carry = all;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kEach; ++k)
            if (mine + k < length)
                put(p, placeOf(p, begin, mine + k), sum, v[k]);
    }
}
TW_KERNEL __launch_bounds__(256) cumulative_sum_threads(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const line = threadIndex(), length = idx(p.length);
    if (line >= p.lines)
        return;
    idx const begin = lineBegin(p, line);
    Number sum = 0;
#pragma unroll 4
    for (idx i = 0; i < length; ++i) {
        idx const at = placeOf(p, begin, i);
        put(p, at, sum, get(p, at));
    }
}

} // namespace tw::ops::cumulative_sum
