// SPDX-License-Identifier: Apache-2.0
// A group (a class of a batch item) a block. It takes the best box that is left, again and again, and goes through the
// others for those that overlap it and for the next best. Then each box that stays looks for its row: behind those of
// earlier items, and those of its item with higher scores.
//   type B, S, O, L: storage of boxes, scores, overlap, least   bool kCenterSizes
// Overlaps are rounded after each operation: no step of theirs is contracted.
#pragma once

#include "kernels/cuda/common/order.cuh"
#include "ops/nms/nms_params.h"

namespace tw::ops::nms {

struct Box
{
    float left, low, right, high;
};

TW_INLINE Box boxOf(Params const& p, u32 group, u32 box)
{
    u32 const item = group / p.classes, kind = p.boxClasses > 1 ? group % p.classes : 0;
    B const* at = static_cast<B const*>(p.boxes) + 4 * ((u64(item) * p.count + box) * p.boxClasses + kind);
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = load<float>(at[i]);
    if constexpr (kCenterSizes) {
        float const w = __fmul_rn(v[2], 0.5f), h = __fmul_rn(v[3], 0.5f);
        return {__fsub_rn(v[0], w), __fsub_rn(v[1], h), __fadd_rn(v[0], w), __fadd_rn(v[1], h)};
    }
    return {fminf(v[0], v[2]), fminf(v[1], v[3]), fmaxf(v[0], v[2]), fmaxf(v[1], v[3])};
}

TW_INLINE float areaOf(Box const& b)
{
    return __fmul_rn(__fsub_rn(b.right, b.left), __fsub_rn(b.high, b.low));
}

TW_INLINE float overlapOf(Box const& a, Box const& b)
{
    float const width = __fsub_rn(fminf(a.right, b.right), fmaxf(a.left, b.left));
    float const height = __fsub_rn(fminf(a.high, b.high), fmaxf(a.low, b.low));
    float const ofA = areaOf(a), ofB = areaOf(b);
    if (!(width > 0 && height > 0 && ofA > 0 && ofB > 0))
        return 0;
    float const shared = __fmul_rn(width, height);
    return __fdiv_rn(shared, __fsub_rn(__fadd_rn(ofA, ofB), shared));
}

TW_INLINE float scoreOf(Params const& p, u32 group, u32 box)
{
    u32 const item = group / p.classes, kind = group % p.classes;
    return load<float>(static_cast<S const*>(p.scores)[(u64(item) * p.count + box) * p.classes + kind]);
}

// Larger for a higher score, then for an earlier box; 0 is none.
TW_INLINE u64 keyOf(float score, u32 box)
{
    return orderedKey(orderOf(score), box);
}

TW_INLINE u64 larger(u64 a, u64 b)
{
    return a > b ? a : b;
}

// What all threads found, for all of them.
template <class F>
TW_INLINE u64 ofBlock(u64 v, F f)
{
    __shared__ u64 scratch[32];
    return blockReduce(v, u64(0), scratch, f);
}

TW_KERNEL nms_select(const __grid_constant__ Params p)
{
    u32 const group = blockIdx.x;
    auto* gone = static_cast<u8*>(p.gone) + u64(group) * p.count;
    auto* list = static_cast<i32*>(p.lists) + u64(group) * p.count;
    float const least = p.least ? load<float>(*static_cast<L const*>(p.least)) : 0.0f;
    float const overlap = p.overlap ? load<float>(*static_cast<O const*>(p.overlap)) : 0.0f;
    i32 const most = *static_cast<i32 const*>(p.most);
    auto add = [](u64 a, u64 b) { return a + b; };
    u64 best = 0, candidates = 0;
    for (u32 b = threadIdx.x; b < p.count; b += blockDim.x) {
        float const score = scoreOf(p, group, b);
        bool const isCandidate = score > least;
        gone[b] = !isCandidate;
        candidates += isCandidate;
        if (isCandidate)
            best = larger(best, keyOf(score, b));
    }
    candidates = ofBlock(candidates, add);
    i32 stay = 0;
    while (stay < most) {
        best = ofBlock(best, larger);
        if (!best)
            break;
        if (candidates > p.limit) { // is it among the best of them?
            u64 before = 0;
            for (u32 b = threadIdx.x; b < p.count; b += blockDim.x)
                if (float const score = scoreOf(p, group, b); score > least)
                    before += keyOf(score, b) > best;
            if (ofBlock(before, add) >= p.limit)
                break;
        }
        u32 const taken = indexOfKey(best);
        if (threadIdx.x == 0)
            list[stay] = i32(taken);
        ++stay;
        Box const box = boxOf(p, group, taken);
        best = 0;
        for (u32 b = threadIdx.x; b < p.count; b += blockDim.x) {
            if (gone[b])
                continue;
            if (b == taken || overlapOf(box, boxOf(p, group, b)) > overlap)
                gone[b] = 1;
            else
                best = larger(best, keyOf(scoreOf(p, group, b), b));
        }
    }
    if (threadIdx.x == 0)
        static_cast<i32*>(p.sizes)[group] = stay;
}

// How many boxes of `group` stand before one of another class with this score.
TW_INLINE u32 before(Params const& p, u32 group, float score, bool isEarlierClass)
{
    i32 const* list = static_cast<i32 const*>(p.lists) + u64(group) * p.count;
    u32 low = 0, high = u32(static_cast<i32 const*>(p.sizes)[group]);
    while (low < high) {
        u32 const middle = (low + high) / 2;
        float const other = scoreOf(p, group, u32(list[middle]));
        if (other > score || (isEarlierClass && other == score))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

TW_KERNEL nms_rows(const __grid_constant__ Params p)
{
    u32 const group = blockIdx.x, item = group / p.classes, first = item * p.classes;
    i32 const* sizes = static_cast<i32 const*>(p.sizes);
    auto add = [](u64 a, u64 b) { return a + b; };
    u64 earlier = 0, all = 0;
    for (u32 g = threadIdx.x; g < p.items * p.classes; g += blockDim.x) {
        all += u32(sizes[g]);
        earlier += g < first ? u32(sizes[g]) : 0;
    }
    earlier = ofBlock(earlier, add);
    all = ofBlock(all, add);
    if (group == 0 && threadIdx.x == 0)
        *static_cast<i32*>(p.total) = i32(all);
    i32 const* list = static_cast<i32 const*>(p.lists) + u64(group) * p.count;
    for (u32 k = threadIdx.x; k < u32(sizes[group]); k += blockDim.x) {
        float const score = scoreOf(p, group, u32(list[k]));
        u64 row = earlier + k;
        for (u32 g = first; g < first + p.classes; ++g)
            if (g != group)
                row += before(p, g, score, g < group);
        i32* y = static_cast<i32*>(p.rows) + 3 * row;
        y[0] = i32(item);
        y[1] = i32(group - first);
        y[2] = list[k];
    }
}

} // namespace tw::ops::nms
