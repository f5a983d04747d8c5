// SPDX-License-Identifier: Apache-2.0
// A block for each segment of a slice: its threads hold the segment's keys in registers, and the least key to take is
// found bit by bit, by counting. Where a slice has several segments, the next level selects among what they left.
//   type T; bool kLargest; int kThreads, kEach (keys of a thread), kSorted (a power of 2, k or more)
#pragma once

#include "ops/topk/topk_keys.cuh"
#include "ops/topk/topk_params.h"

namespace tw::ops::topk {

constexpr u32 kWarps = kThreads / 32;

// Of all threads of the block. `part`: of each warp; of two rounds in turn, so that one barrier is enough.
template <class C, class F>
TW_INLINE C ofBlock(C v, C identity, C (&part)[2][32], int round, F f)
{
    v = warpReduce(v, f);
    if constexpr (kWarps > 1) {
        C(&now)[32] = part[round & 1];
        u32 const lane = threadIdx.x & 31;
        if (lane == 0)
            now[threadIdx.x >> 5] = v;
        __syncthreads();
        v = warpReduce(lane < kWarps ? now[lane] : identity, f);
    }
    return v;
}

// The least of the `most` largest keys, or 1 where there are not so many.
TW_INLINE u64 leastKey(u64 const (&key)[kEach], u32 most)
{
    __shared__ u64 extremes[2][32];
    __shared__ u32 counts[2][32];
    u64 top = 0, low = ~u64(0);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
        top = key[e] > top ? key[e] : top;
        low = key[e] < low ? key[e] : low;
    }
    top = ofBlock(top, u64(0), extremes, 0, [](u64 a, u64 b) { return a > b ? a : b; });
    low = ofBlock(low, ~u64(0), extremes, 1, [](u64 a, u64 b) { return a < b ? a : b; });
    int bit = 63 - __clzll(i64(top ^ low)); // the bits above are those of all keys
    u64 least = bit < 63 ? top >> (bit + 1) << (bit + 1) : 0;
    for (int round = 0; bit >= 0; --bit, ++round) {
        u64 const next = least | u64(1) << bit;
        u32 many = 0;
#pragma unroll
        for (int e = 0; e < kEach; ++e)
            many += key[e] >= next;
        many = ofBlock(many, 0u, counts, round, [](u32 a, u32 b) { return a + b; });
        if (many >= most)
            least = next;
        if (many == most)
            break;
    }
    return least > 0 ? least : 1;
}

// Best first.
TW_INLINE void sort(u64 (&found)[kSorted])
{
#pragma unroll 1
    for (u32 size = 2; size <= kSorted; size *= 2)
#pragma unroll 1
        for (u32 step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (u32 i = threadIdx.x; i < kSorted / 2; i += kThreads) {
                u32 const a = 2 * i - (i & (step - 1)), b = a + step;
                u64 const x = found[a], y = found[b];
                if ((x < y) == ((a & size) == 0)) {
                    found[a] = y;
                    found[b] = x;
                }
            }
        }
    __syncthreads();
}

template <bool kOfKeys, bool kIsLast>
TW_INLINE void select(SelectParams const& p)
{
    constexpr u32 kSegment = kThreads * kEach;
    __shared__ u64 found[kSorted];
    __shared__ u32 taken;
    waitForPrevious();
    releaseDependents();
    idx const slice = divide(idx(blockIdx.x), p.segments), segment = idx(blockIdx.x) - slice * idx(p.segments.d);
    idx const outer = divide(slice, p.inner), step = idx(p.inner.d), column = slice - outer * step;
    idx const n = idx(p.n), k = idx(p.k), first = segment * kSegment + threadIdx.x;
    T const* const x = static_cast<T const*>(p.x) + outer * idx(p.axis) * step + column;
    u64 key[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
        idx const j = first + e * kThreads;
        if constexpr (kOfKeys)
            key[e] = j < n ? p.from[slice * n + j] : 0;
        else
            key[e] = j < n ? keyOf(load<float>(x[j * step]), u32(j)) : 0;
    }
    for (u32 i = threadIdx.x; i < kSorted; i += kThreads)
        found[i] = 0;
    if (threadIdx.x == 0)
        taken = 0;
    u64 const least = leastKey(key, u32(k));
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kEach; ++e)
        if (key[e] >= least)
            found[atomicAdd(&taken, 1u)] = key[e];
    if constexpr (kIsLast)
        sort(found);
    else
        __syncthreads();
    for (u32 i = threadIdx.x; i < k; i += kThreads)
        if constexpr (kIsLast) {
            u32 const j = indexOfKey(found[i]);
            idx const at = (outer * k + i) * step + column;
            static_cast<i32*>(p.indices)[at] = i32(j);
            static_cast<T*>(p.values)[at] = x[j * step];
        } else {
            p.to[idx(blockIdx.x) * k + i] = found[i];
        }
}

} // namespace tw::ops::topk
