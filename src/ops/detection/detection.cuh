// SPDX-License-Identifier: Apache-2.0
// What the kernels share: candidates and their keys, boxes, overlaps, outputs; and the plain search: an image a block,
// which takes the best candidate that is left, again and again, and goes through the others for those that it suppresses
// and for the next best.
//   type B, S, A: storage of boxes, scores, anchors   bool kHasAnchors, kCenterSizes, kSigmoid, kAboveLeast, kAboveOverlap,
//   kClassesFirst, kClips, kRows   int kPixels
// Boxes and overlaps are rounded after each operation: no step of theirs is contracted.
#pragma once

#include "kernels/cuda/common/order.cuh"
#include "ops/detection/detection_params.h"

namespace tw::ops::detection {

constexpr u32 kNumbers = 4, kListed = 0, kIsDone = 1, kIsCut = 2; // of an image

struct alignas(16) Box
{
    float v[4]; // two corners
};

TW_INLINE float smaller(float a, float b)
{
    return a < b ? a : b;
}
TW_INLINE float larger(float a, float b)
{
    return a > b ? a : b;
}
TW_INLINE Box inOrder(Box const& b)
{
    return {{smaller(b.v[0], b.v[2]), smaller(b.v[1], b.v[3]), larger(b.v[0], b.v[2]), larger(b.v[1], b.v[3])}};
}
TW_INLINE float areaOf(float h, float w)
{
    return h > 0 && w > 0 ? __fmul_rn(h, w) : 0.0f;
}
TW_INLINE float expOf(float x)
{
    return float(exp(double(x)));
}

template <class T>
TW_INLINE Box fourAt(void const* from, u64 box)
{
    T const* at = static_cast<T const*>(from) + 4 * box;
    Box b;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        b.v[i] = load<float>(at[i]);
    return b;
}

// As it goes out.
TW_INLINE Box boxOf(Params const& p, u32 item, u32 box, u32 kind)
{
    u64 const at = (u64(item) * p.count + box) * p.boxClasses + (p.boxClasses > 1 ? kind : 0);
    Box b = fourAt<B>(p.boxes, at);
    Box a{};
    if constexpr (kHasAnchors)
        a = fourAt<A>(p.anchors, (p.anchorItems > 1 ? u64(item) * p.count : 0) + box);
    if constexpr (!kCenterSizes) {
        if constexpr (kHasAnchors) {
            b = inOrder(b);
            a = inOrder(a);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                b.v[i] = __fadd_rn(b.v[i], a.v[i]);
        }
        return b;
    } else {
        Box y;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float centre = b.v[i], size = b.v[i + 2];
            if constexpr (kHasAnchors) {
                centre = __fadd_rn(__fmul_rn(centre, a.v[i + 2]), a.v[i]);
                size = __fmul_rn(a.v[i + 2], expOf(size));
            }
            float const half = __fmul_rn(size, 0.5f);
            y.v[i] = __fsub_rn(centre, half);
            y.v[i + 2] = __fadd_rn(centre, half);
        }
        return y;
    }
}

TW_INLINE float areaOf(Box const& b)
{
    float const more = kPixels > 0 ? 1.0f : 0.0f;
    return areaOf(__fadd_rn(__fsub_rn(b.v[2], b.v[0]), more), __fadd_rn(__fsub_rn(b.v[3], b.v[1]), more));
}

// Of boxes whose corners are in order.
TW_INLINE bool covers(Params const& p, Box const& a, Box const& b)
{
    float const more = kPixels > 1 ? 1.0f : 0.0f;
    float const low = larger(a.v[0], b.v[0]), left = larger(a.v[1], b.v[1]);
    float const high = smaller(a.v[2], b.v[2]), right = smaller(a.v[3], b.v[3]);
    bool const meet = low <= high && left <= right;
    float const shared = areaOf(__fadd_rn(meet ? __fsub_rn(high, low) : 0.0f, more),
                                __fadd_rn(meet ? __fsub_rn(right, left) : 0.0f, more));
    float overlap = 0;
    if (shared > 0) {
        float const all = __fsub_rn(__fadd_rn(areaOf(a), areaOf(b)), shared);
        overlap = all > 0 ? __fdiv_rn(shared, all) : 0.0f;
    }
    return kAboveOverlap ? overlap > p.overlap : overlap >= p.overlap;
}

TW_INLINE float scoreOf(Params const& p, u32 item, u32 element)
{
    return load<float>(static_cast<S const*>(p.scores)[u64(item) * p.count * p.classes + element]);
}
TW_INLINE bool isCandidate(Params const& p, u32 element, float score)
{
    bool const passes = kAboveLeast ? score > p.least : score >= p.least;
    return passes && (p.background < 0 || element % p.classes != u32(p.background));
}
// Larger for what comes first; 0 is none.
TW_INLINE u64 keyOf(Params const& p, float score, u32 element)
{
    u32 const tie = kClassesFirst ? element % p.classes * p.count + element / p.classes : element;
    return orderedKey(orderOf(score), tie);
}
TW_INLINE u32 boxOfKey(Params const& p, u64 key)
{
    u32 const tie = indexOfKey(key);
    return kClassesFirst ? tie % p.count : tie / p.classes;
}
TW_INLINE u32 classOfKey(Params const& p, u64 key)
{
    u32 const tie = indexOfKey(key);
    return kClassesFirst ? tie / p.count : tie % p.classes;
}

TW_INLINE void write(Params const& p, u32 item, u32 row, u32 box, u32 kind)
{
    u64 const at = u64(item) * p.most + row;
    if constexpr (kRows) {
        static_cast<u32*>(p.found)[2 * at] = box;
        static_cast<u32*>(p.found)[2 * at + 1] = kind;
    } else {
        Box const b = boxOf(p, item, box, kind);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            static_cast<B*>(p.outBoxes)[4 * at + i] = store<B>(!kClips      ? b.v[i]
                                                               : b.v[i] > 0 ? smaller(b.v[i], 1.0f)
                                                                            : 0.0f);
        float const score = scoreOf(p, item, box * p.classes + kind);
        static_cast<S*>(p.outScores)[at] = store<S>(kSigmoid ? float(1 / (1 + exp(-double(score)))) : score);
        static_cast<i32*>(p.outClasses)[at] = i32(kind);
    }
}
// By all threads of the block.
TW_INLINE void finish(Params const& p, u32 item, u32 rows)
{
    if (threadIdx.x == 0)
        static_cast<i32*>(p.counts)[item] = i32(rows);
    if constexpr (!kRows) {
        for (u32 row = rows + threadIdx.x; row < p.most; row += blockDim.x) {
            u64 const at = u64(item) * p.most + row;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                static_cast<B*>(p.outBoxes)[4 * at + i] = store<B>(0.0f);
            static_cast<S*>(p.outScores)[at] = store<S>(0.0f);
            static_cast<i32*>(p.outClasses)[at] = p.noClass;
        }
    }
}

TW_INLINE u64 laterKey(u64 a, u64 b)
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

TW_KERNEL detection_plain(const __grid_constant__ Params p)
{
    u32 const item = blockIdx.x, elements = p.count * p.classes;
    if (p.isSecond && static_cast<u32 const*>(p.numbers)[item * kNumbers + kIsDone])
        return;
    auto* gone = static_cast<u8*>(p.list) + u64(item) * elements * (p.isSecond ? 8 : 1);
    u32* ofClass = static_cast<u32*>(p.ofClass) + u64(item) * 2 * p.classes;
    auto add = [](u64 a, u64 b) { return a + b; };
    for (u32 c = threadIdx.x; c < p.classes; c += blockDim.x)
        ofClass[c] = 0;
    u64 best = 0, candidates = 0;
    for (u32 i = threadIdx.x; i < elements; i += blockDim.x) {
        float const score = scoreOf(p, item, i);
        bool const is = isCandidate(p, i, score);
        gone[i] = !is;
        candidates += is;
        if (is)
            best = laterKey(best, keyOf(p, score, i));
    }
    candidates = ofBlock(candidates, add);
    u32 rows = 0;
    while (rows < p.most) {
        best = ofBlock(best, laterKey);
        if (!best)
            break;
        u32 const box = boxOfKey(p, best), kind = classOfKey(p, best), taken = box * p.classes + kind;
        if (p.limit && candidates > p.limit) { // is it among the best of them?
            u64 before = 0;
            for (u32 i = threadIdx.x; i < elements; i += blockDim.x)
                if (float const score = scoreOf(p, item, i); isCandidate(p, i, score))
                    before += keyOf(p, score, i) > best;
            if (ofBlock(before, add) >= p.limit)
                break;
        }
        bool takesPart = true;
        if (p.limitOfClass && p.count > p.limitOfClass) {
            u64 before = 0;
            for (u32 b = threadIdx.x; b < p.count; b += blockDim.x) {
                u32 const i = b * p.classes + kind;
                if (float const score = scoreOf(p, item, i); isCandidate(p, i, score))
                    before += keyOf(p, score, i) > best;
            }
            takesPart = ofBlock(before, add) < p.limitOfClass;
        }
        if (takesPart) {
            u32 const have = ofClass[kind];
            __syncthreads();
            bool const isWritten = !p.mostOfClass || have < p.mostOfClass;
            if (threadIdx.x == 0) {
                ofClass[kind] = have + 1;
                if (isWritten)
                    write(p, item, rows, box, kind);
            }
            rows += isWritten;
        }
        // Where it does not take part, none of its class that are left do.
        Box const mine = inOrder(boxOf(p, item, box, kind));
        best = 0;
        for (u32 i = threadIdx.x; i < elements; i += blockDim.x) {
            if (gone[i])
                continue;
            u32 const b = i / p.classes, c = i - b * p.classes;
            if (i == taken || (c == kind && (!takesPart || covers(p, mine, inOrder(boxOf(p, item, b, c))))))
                gone[i] = 1;
            else
                best = laterKey(best, keyOf(p, scoreOf(p, item, i), i));
        }
    }
    finish(p, item, rows);
}

// Rows of all images one after the other, an image a block; all of them repeat the last one behind it.
TW_KERNEL detection_rows(const __grid_constant__ Params p)
{
    u32 const item = blockIdx.x;
    auto const* counts = static_cast<u32 const*>(p.counts);
    auto const* found = static_cast<u32 const*>(p.found);
    u64 earlier = 0, all = 0, last = 0; // last: 1 + the last image that has any
    for (u32 n = threadIdx.x; n < p.items; n += blockDim.x) {
        all += counts[n];
        earlier += n < item ? counts[n] : 0;
        last = counts[n] ? n + 1 : last;
    }
    auto add = [](u64 a, u64 b) { return a + b; };
    earlier = ofBlock(earlier, add);
    all = ofBlock(all, add);
    last = ofBlock(last, laterKey);
    i32* y = static_cast<i32*>(p.outRows);
    for (u32 k = threadIdx.x; k < counts[item]; k += blockDim.x) {
        u64 const at = u64(item) * p.most + k;
        y[3 * (earlier + k)] = i32(item);
        y[3 * (earlier + k) + 1] = i32(found[2 * at + 1]);
        y[3 * (earlier + k) + 2] = i32(found[2 * at]);
    }
    i32 rest[3] = {-1, -1, -1};
    if (last) {
        u64 const at = (last - 1) * p.most + counts[last - 1] - 1;
        rest[0] = i32(last - 1);
        rest[1] = i32(found[2 * at + 1]);
        rest[2] = i32(found[2 * at]);
    }
    u64 const end = u64(p.items) * p.most;
    for (u64 k = all + u64(item) * blockDim.x + threadIdx.x; k < end; k += u64(p.items) * blockDim.x)
#pragma unroll
        for (int i = 0; i < 3; ++i)
            y[3 * k + i] = rest[i];
}

} // namespace tw::ops::detection
