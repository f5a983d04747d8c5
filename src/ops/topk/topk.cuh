// SPDX-License-Identifier: Apache-2.0
// A block for each slice and for each kThreads of its elements: an element's place is the number of elements that come
// before it. n comparisons for each element: plain.
//   type T; bool kLargest; int kThreads
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/topk/topk_params.h"

namespace tw::ops::topk {

// NaN is larger than all; equal elements stay in order.
TW_INLINE bool less(float a, float b)
{
    return b != b ? a == a : a < b;
}
TW_INLINE bool isBefore(float a, idx i, float b, idx j)
{
    return (kLargest ? less(b, a) : less(a, b)) || (!(kLargest ? less(a, b) : less(b, a)) && i < j);
}
TW_KERNEL topk(const __grid_constant__ Params p)
{
    __shared__ float chunk[kThreads];
    idx const slice = blockIdx.x, o = divide(slice, p.inner), i = slice - o * idx(p.inner.d);
    idx const step = idx(p.inner.d), n = idx(p.n);
    T const* const x = static_cast<T const*>(p.x) + o * n * step + i;
    idx const j = blockIdx.y * kThreads + threadIdx.x;
    float const mine = j < n ? load<float>(x[j * step]) : 0;
    idx place = 0;
    for (idx first = 0; first < n; first += kThreads) {
        idx const other = first + threadIdx.x;
        __syncthreads();
        if (other < n)
            chunk[threadIdx.x] = load<float>(x[other * step]);
        __syncthreads();
        idx const many = min(n - first, idx(kThreads));
        for (idx q = 0; q < many; ++q)
            place += isBefore(chunk[q], first + q, mine, j);
    }
    if (j < n && place < idx(p.k)) {
        idx const at = (o * idx(p.k) + place) * step + i;
        static_cast<T*>(p.values)[at] = x[j * step];
        static_cast<i32*>(p.indices)[at] = i32(j);
    }
}

} // namespace tw::ops::topk
