// SPDX-License-Identifier: Apache-2.0
// A thread for each of many slices side by side: the best so far stay in its registers.
//   type T; bool kLargest; int kMost (found of a slice)
#pragma once

#include "ops/topk/topk_keys.cuh"
#include "ops/topk/topk_params.h"

namespace tw::ops::topk {

TW_INLINE void columns(ColumnParams const& p)
{
    constexpr u32 kTogether = 8; // loads in flight
    waitForPrevious();
    releaseDependents();
    idx const slice = threadIndex();
    if (slice >= p.slices)
        return;
    idx const outer = divide(slice, p.inner), step = idx(p.inner.d), column = slice - outer * step;
    u32 const n = u32(p.n);
    T const* const x = static_cast<T const*>(p.x) + outer * n * step + column;
    u64 best[kMost] = {};
    for (u32 first = 0; first < n; first += kTogether) {
        T v[kTogether];
#pragma unroll
        for (u32 e = 0; e < kTogether; ++e)
            v[e] = x[min(first + e, n - 1) * step];
#pragma unroll
        for (u32 e = 0; e < kTogether; ++e) {
            u64 key = first + e < n ? keyOf(load<float>(v[e]), first + e) : 0;
#pragma unroll
            for (int i = 0; i < kMost; ++i)
                if (key > best[i]) {
                    u64 const worse = best[i];
                    best[i] = key;
                    key = worse;
                }
        }
    }
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
        u32 const j = indexOfKey(best[i]);
        idx const at = (outer * kMost + i) * step + column;
        static_cast<i32*>(p.indices)[at] = i32(j);
        static_cast<T*>(p.values)[at] = x[j * step];
    }
}

} // namespace tw::ops::topk
