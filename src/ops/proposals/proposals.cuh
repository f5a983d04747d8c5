// SPDX-License-Identifier: Apache-2.0
// Five kernels: ranks of scores; the best boxes of an image, found by the digits of their keys; these in order; which of
// them overlap; those that stay.
//   type B, S, D, I: storage of boxes, scores, deltas, images   bool kHasDeltas, kHasClasses, kHasImages, kHasLimits,
//   kAsksSides, kIsMinStrict   float kLeast, kAbove, kOverlap, kMostGrowth, kPlus, kAreaPlus, kMinSide, kWeight0 to
//   kWeight3, kLimit0, kLimit1
// No step is contracted.
#pragma once

#include "kernels/cuda/common/order.cuh"
#include "ops/proposals/proposals_params.h"

namespace tw::ops::proposals {

TW_INLINE float clipped(float v, float limit)
{
    return !(v > 0) ? 0.0f : v < limit ? v : limit;
}

TW_INLINE void move(float& low, float& high, float d0, float d1, float w0, float w1)
{
    float const side = __fadd_rn(__fsub_rn(high, low), kPlus), growth = __fmul_rn(d1, w1);
    float const step = __fmul_rn(__fmul_rn(d0, w0), side);
    float const centre = __fadd_rn(__fadd_rn(low, __fmul_rn(0.5f, side)), step);
    float const grown = __fmul_rn(expf(growth > kMostGrowth ? kMostGrowth : growth), side);
    low = __fsub_rn(centre, __fmul_rn(0.5f, grown));
    high = __fsub_rn(__fadd_rn(low, grown), kPlus);
}

// Box `at` % count of image `n`, at = n * count + box.
TW_INLINE Scored boxAt(Params const& p, u32 n, u64 at)
{
    Scored b;
    B const* v = static_cast<B const*>(p.boxes) + 4 * (p.isShared ? at - u64(n) * p.count : at);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        b.low[i] = load<float>(v[i]);
        b.high[i] = load<float>(v[2 + i]);
        if constexpr (kHasDeltas) {
            D const* d = static_cast<D const*>(p.deltas) + 4 * at;
            move(b.low[i], b.high[i], load<float>(d[i]), load<float>(d[2 + i]), i ? kWeight1 : kWeight0,
                 i ? kWeight3 : kWeight2);
        }
        if constexpr (kHasImages || kHasLimits) {
            float limit = i ? kLimit1 : kLimit0;
            if constexpr (kHasImages)
                limit = __fsub_rn(load<float>(static_cast<I const*>(p.images)[3 * u64(n) + 1 - i]), 1.0f);
            b.low[i] = clipped(b.low[i], limit);
            b.high[i] = clipped(b.high[i], limit);
        }
    }
    b.score = load<float>(static_cast<S const*>(p.scores)[at]);
    b.kind = kHasClasses ? static_cast<i32 const*>(p.classes)[at] : 0;
    return b;
}

TW_INLINE bool isLarge(Params const& p, u32 n, u64 at)
{
    if constexpr (!kAsksSides)
        return true;
    Scored const b = boxAt(p, n, at);
    float least = kMinSide;
    if constexpr (kHasImages)
        least = __fmul_rn(least, load<float>(static_cast<I const*>(p.images)[3 * u64(n) + 2]));
    bool is = true;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float const side = __fadd_rn(__fsub_rn(b.high[i], b.low[i]), kAreaPlus);
        is = is && (kIsMinStrict ? side > least : side >= least);
    }
    return is;
}

// blockIdx.y: the image.
TW_KERNEL proposals_ranks(const __grid_constant__ Params p)
{
    u32 const box = blockIdx.x * blockDim.x + threadIdx.x, n = blockIdx.y;
    if (box >= p.count)
        return;
    u64 const at = u64(n) * p.count + box;
    float const score = load<float>(static_cast<S const*>(p.scores)[at]);
    bool const is = score >= kLeast && score > kAbove && isLarge(p, n, at);
    p.ranks[at] = is ? orderOf(score) : 0;
}

// An image a block. The least key of those to take has the digits of `prefix`, one more in each round.
TW_KERNEL proposals_select(const __grid_constant__ Params p)
{
    __shared__ u32 histogram[256], found[3],
        taken; // found: the digit, how many are left to take of it, whether that is all
    u32 const n = blockIdx.x, lane = threadIdx.x & 31;
    u32 const* ranks = p.ranks + u64(n) * p.count;
    u64 prefix = 0;
    u32 left = p.most;
    u32 const rounded = (p.count + 31) / 32 * 32; // whole warps go through the loop together
    for (int shift = 56; shift >= 0; shift -= 8) {
        if (threadIdx.x < 256)
            histogram[threadIdx.x] = 0;
        if (threadIdx.x < 3)
            found[threadIdx.x] = 0;
        __syncthreads();
        for (u32 i = threadIdx.x; i < rounded; i += blockDim.x) {
            u32 const rank = i < p.count ? ranks[i] : 0;
            u64 const key = orderedKey(rank, i);
            bool const isIn = rank != 0 && (shift == 56 || (key ^ prefix) >> (shift + 8) == 0);
            u32 const digit = isIn ? u32(key >> shift) & 255 : 256;
            u32 const same = __match_any_sync(0xffffffffu, digit);
            if (isIn && u32(__ffs(same)) == lane + 1)
                atomicAdd(&histogram[digit], u32(__popc(same)));
        }
        __syncthreads();
        if (threadIdx.x < 256) {
            u32 above = 0;
            for (u32 d = threadIdx.x + 1; d < 256; ++d)
                above += histogram[d];
            u32 const here = histogram[threadIdx.x];
            if (above < left && above + here >= left) {
                found[0] = threadIdx.x;
                found[1] = left - above;
                found[2] = above + here == left ? 1 : 2;
            }
        }
        __syncthreads();
        u32 const digit = found[0], state = found[2];
        left = found[1];
        __syncthreads(); // before they are written again
        if (state == 0)  // there are no more than that (in the first round): all
            break;
        prefix |= u64(digit) << shift;
        if (state == 1)
            break;
    }
    if (threadIdx.x == 0)
        taken = 0;
    __syncthreads();
    u64* keys = p.keys + u64(n) * p.most;
    for (u32 i = threadIdx.x; i < p.count; i += blockDim.x)
        if (u32 const rank = ranks[i]; rank != 0 && orderedKey(rank, i) >= prefix)
            if (u32 const place = atomicAdd(&taken, 1u); place < p.most)
                keys[place] = orderedKey(rank, i);
    __syncthreads();
    if (threadIdx.x == 0)
        p.looked[n] = min(taken, p.most);
}

// Each box looks for its place: how many are better. blockIdx.y: the image.
TW_KERNEL proposals_order(const __grid_constant__ Params p)
{
    __shared__ u64 others[256];
    u32 const n = blockIdx.y, looked = p.looked[n], own = blockIdx.x * 256 + threadIdx.x;
    u64 const* keys = p.keys + u64(n) * p.most;
    if (blockIdx.x * 256 >= looked) // the whole block
        return;
    u64 const key = own < looked ? keys[own] : 0;
    u32 place = 0;
    for (u32 first = 0; first < looked; first += 256) {
        __syncthreads();
        others[threadIdx.x] = first + threadIdx.x < looked ? keys[first + threadIdx.x] : 0;
        __syncthreads();
#pragma unroll 16
        for (u32 i = 0; i < 256; ++i)
            place += others[i] > key;
    }
    if (own < looked)
        p.sorted[u64(n) * p.most + place] = boxAt(p, n, u64(n) * p.count + indexOfKey(key));
}

TW_INLINE float areaOf(Scored const& b)
{
    return __fmul_rn(__fadd_rn(__fsub_rn(b.high[0], b.low[0]), kAreaPlus),
                     __fadd_rn(__fsub_rn(b.high[1], b.low[1]), kAreaPlus));
}

TW_INLINE float overlapOf(Scored const& a, Scored const& b)
{
    float side[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float const high = a.high[i] < b.high[i] ? a.high[i] : b.high[i],
                    low = a.low[i] > b.low[i] ? a.low[i] : b.low[i];
        side[i] = __fadd_rn(__fsub_rn(high, low), kAreaPlus);
    }
    if (!(side[0] > 0 && side[1] > 0))
        return 0;
    float const shared = __fmul_rn(side[0], side[1]);
    float const all = __fsub_rn(__fadd_rn(areaOf(a), areaOf(b)), shared);
    return all > 0 ? __fdiv_rn(shared, all) : 0.0f;
}

// 64 boxes (blockIdx.x) against 64 (blockIdx.y) of an image (blockIdx.z), a thread for each of the first.
TW_KERNEL proposals_masks(const __grid_constant__ Params p)
{
    __shared__ Scored others[64];
    u32 const n = blockIdx.z, looked = p.looked[n], first = blockIdx.x * 64, second = blockIdx.y * 64;
    if (second < first || first >= looked || second >= looked) // the whole block
        return;
    Scored const* sorted = p.sorted + u64(n) * p.most;
    u32 const own = first + threadIdx.x;
    if (second + threadIdx.x < looked)
        others[threadIdx.x] = sorted[second + threadIdx.x];
    __syncthreads();
    if (own >= looked)
        return;
    Scored const box = sorted[own];
    u64 mask = 0;
    for (u32 i = 0; i < 64 && second + i < looked; ++i)
        if (second + i > own && others[i].kind == box.kind && overlapOf(box, others[i]) > kOverlap)
            mask |= u64(1) << i;
    p.masks[(u64(n) * p.most + own) * p.words + blockIdx.y] = mask;
}

TW_INLINE void write(Params const& p, u64 row, Scored const& b, float best)
{
    float* y = static_cast<float*>(p.rows) + row * p.columns;
    y[0] = b.low[0];
    y[1] = b.low[1];
    y[2] = b.high[0];
    y[3] = b.high[1];
    if (p.columns > 4) {
        y[4] = float(b.kind);
        y[5] = b.score;
    }
    static_cast<float*>(p.best)[row] = best;
}

// An image a block: 64 boxes at a time, best first. Those that stay strike out others behind them.
//   dynamic shared memory: u64 [words]
TW_KERNEL proposals_keep(const __grid_constant__ Params p)
{
    extern __shared__ u64 gone[];
    __shared__ u64 own[64], stay;
    u32 const n = blockIdx.x, looked = p.looked[n];
    Scored const* sorted = p.sorted + u64(n) * p.most;
    u64 const* masks = p.masks + u64(n) * p.most * p.words;
    u64 const firstRow = u64(n) * p.keep;
    for (u32 w = threadIdx.x; w < p.words; w += blockDim.x)
        gone[w] = 0;
    u32 kept = 0;
    u32 const words = (looked + 63) / 64;
    for (u32 w = 0; w < words && kept < p.keep; ++w) {
        u32 const here = min(64u, looked - 64 * w);
        __syncthreads();
        if (threadIdx.x < here)
            own[threadIdx.x] = masks[u64(64 * w + threadIdx.x) * p.words + w];
        __syncthreads();
        if (threadIdx.x == 0) {
            u64 left = ~gone[w] & (here == 64 ? ~u64(0) : (u64(1) << here) - 1), taken = 0;
            for (u32 room = p.keep - kept; left && room > 0; --room) {
                int const i = __ffsll(i64(left)) - 1;
                taken |= u64(1) << i;
                left &= ~(own[i] | u64(1) << i);
            }
            stay = taken;
        }
        __syncthreads();
        u64 const taken = stay;
        for (u32 v = w + 1 + threadIdx.x; v < words; v += blockDim.x) {
            u64 struck = gone[v];
            for (u64 left = taken; left; left &= left - 1)
                struck |= masks[(u64(64 * w) + (__ffsll(i64(left)) - 1)) * p.words + v];
            gone[v] = struck;
        }
        if (threadIdx.x < 64 && (taken >> threadIdx.x & 1)) {
            u32 const place = kept + u32(__popcll(taken & ((u64(1) << threadIdx.x) - 1)));
            Scored const b = sorted[64 * w + threadIdx.x];
            write(p, firstRow + place, b, b.score);
        }
        kept += u32(__popcll(taken));
    }
    for (u32 k = kept + threadIdx.x; k < p.keep; k += blockDim.x)
        write(p, firstRow + k, Scored{{0, 0}, {0, 0}, 0, -1}, __int_as_float(0xff800000));
}

} // namespace tw::ops::proposals
