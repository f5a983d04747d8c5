// SPDX-License-Identifier: Apache-2.0
// The search over all multiprocessors. `detection_count` counts candidates in bins of scores; `detection_list` lists those
// of the best bins that have enough of them, in any order; then `detection_search`, an image a block, sorts the best of the
// list in shared memory and goes through them, kTile at a time: each that is left suppresses those behind it. The order of
// the keys is total, so the order of the list does not matter. Where all of a list is used up and candidates outside of it
// are left, detection_plain does the image again.
//   what detection.cuh needs   int kWanted: candidates that a list has at least, where there are so many
#pragma once

#include "ops/detection/detection.cuh"

namespace tw::ops::detection {

constexpr u32 kBins = 8192, kPassThreads = 512, kSearchThreads = 1024, kSorted = 8192, kTile = kSearchThreads;
constexpr u32 kAllLanes = 0xffffffffu;

TW_INLINE u32 binOf(Params const& p, float score)
{
    u32 const bin = (orderOf(score) - p.firstKey) >> p.shift; // a candidate's order is not below the first
    return bin < kBins ? bin : kBins - 1;
}

constexpr u32 kPack = 16 / sizeof(S);

// f(first element, kPack scores, bits of those that there are), by all threads of the grid's row; a warp's threads call it
// together.
template <class F>
TW_INLINE void forScores(Params const& p, u32 item, F f)
{
    u32 const elements = p.count * p.classes;
    auto const* x = static_cast<S const*>(p.scores) + u64(item) * elements;
    for (u32 first = blockIdx.x * kPassThreads * kPack; first < elements; first += gridDim.x * kPassThreads * kPack) {
        u32 const i = first + threadIdx.x * kPack;
        float v[kPack] = {};
        u32 has = 0;
        if (p.isPacked && i < elements) {
            Pack<S, kPack> const pack = *reinterpret_cast<Pack<S, kPack> const*>(x + i);
            has = (1u << kPack) - 1;
#pragma unroll
            for (u32 j = 0; j < kPack; ++j)
                v[j] = load<float>(pack.v[j]);
        } else {
#pragma unroll
            for (u32 j = 0; j < kPack; ++j)
                if (i + j < elements) {
                    has |= 1u << j;
                    v[j] = load<float>(x[i + j]);
                }
        }
        f(i, v, has);
    }
}

TW_KERNEL __launch_bounds__(kPassThreads) detection_count(const __grid_constant__ Params p)
{
    __shared__ u32 bins[kBins];
    for (u32 b = threadIdx.x; b < kBins; b += kPassThreads)
        bins[b] = 0;
    __syncthreads();
    u32 const item = blockIdx.y;
    forScores(p, item, [&](u32 i, float const* v, u32 has) {
#pragma unroll
        for (u32 j = 0; j < kPack; ++j)
            if ((has >> j & 1) && isCandidate(p, i + j, v[j]))
                atomicAdd(&bins[binOf(p, v[j])], 1u);
    });
    __syncthreads();
    u32* all = static_cast<u32*>(p.bins) + item * kBins;
    for (u32 b = threadIdx.x; b < kBins; b += kPassThreads)
        if (bins[b])
            atomicAdd(&all[b], bins[b]);
}

// The lowest bin that is listed.
TW_INLINE u32 lowestBin(u32 const* bins)
{
    constexpr u32 kEach = kBins / kPassThreads;
    __shared__ u32 sums[kPassThreads];
    __shared__ u32 lowest;
    u32 const top = kBins - 1 - threadIdx.x * kEach; // a thread's bins, from the highest on
    u32 own = 0;
    for (u32 j = 0; j < kEach; ++j)
        own += bins[top - j];
    sums[threadIdx.x] = own;
    if (threadIdx.x == 0)
        lowest = 0;
    __syncthreads();
    for (u32 d = 1; d < kPassThreads; d *= 2) {
        u32 const before = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    u32 count = sums[threadIdx.x] - own;
    if (count < u32(kWanted) && count + own >= u32(kWanted)) // one thread at most
        for (u32 j = 0; j < kEach && count < u32(kWanted); ++j) {
            count += bins[top - j];
            lowest = top - j;
        }
    __syncthreads();
    return lowest;
}

TW_KERNEL __launch_bounds__(kPassThreads) detection_list(const __grid_constant__ Params p)
{
    u32 const item = blockIdx.y, lane = threadIdx.x & 31;
    u32 const lowest = lowestBin(static_cast<u32 const*>(p.bins) + item * kBins);
    u32* numbers = static_cast<u32*>(p.numbers) + item * kNumbers;
    u64* list = static_cast<u64*>(p.list) + u64(item) * p.count * p.classes;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        numbers[kIsCut] = lowest > 0;
    forScores(p, item, [&](u32 i, float const* v, u32 has) {
        u32 bits = 0;
#pragma unroll
        for (u32 j = 0; j < kPack; ++j)
            if ((has >> j & 1) && isCandidate(p, i + j, v[j]) && binOf(p, v[j]) >= lowest)
                bits |= 1u << j;
        if (!__any_sync(kAllLanes, bits != 0))
            return;
        u32 const mine = u32(__popc(bits));
        u32 sum = mine;
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2) {
            u32 const before = __shfl_up_sync(kAllLanes, sum, d);
            sum += lane >= d ? before : 0;
        }
        u32 at = 0;
        if (lane == 31)
            at = atomicAdd(&numbers[kListed], sum);
        at = __shfl_sync(kAllLanes, at, 31) + sum - mine;
#pragma unroll
        for (u32 j = 0; j < kPack; ++j)
            if (bits >> j & 1)
                list[at++] = keyOf(p, v[j], i + j);
    });
}

// Of the keys below `end`, those from the result on are kSorted at most, and half as many at least; 0: all are that few.
TW_INLINE u64 firstOfBest(u64 const* list, u32 listed, u64 end)
{
    __shared__ u32 digits[256];
    u32 const lane = threadIdx.x & 31;
    u64 prefix = 0; // of the keys that are divided further
    u32 above = 0;  // keys above them
    for (int shift = 56; shift >= 0; shift -= 8) {
        __syncthreads();
        if (threadIdx.x < 256)
            digits[threadIdx.x] = 0;
        __syncthreads();
        for (u32 i = threadIdx.x; i < listed; i += kSearchThreads) {
            u64 const key = list[i];
            if (key < end && (shift == 56 || key >> (shift + 8) == prefix))
                atomicAdd(&digits[key >> shift & 255], 1u);
        }
        __syncthreads();
        // Eight digits a lane, from the highest on; each warp comes to the same result.
        u32 own = 0;
        for (u32 j = 0; j < 8; ++j)
            own += digits[255 - 8 * lane - j];
        u32 sum = own;
#pragma unroll
        for (u32 d = 1; d < 32; d *= 2) {
            u32 const before = __shfl_up_sync(kAllLanes, sum, d);
            sum += lane >= d ? before : 0;
        }
        u32 const tooMany = __ballot_sync(kAllLanes, above + sum > kSorted);
        if (!tooMany)
            return prefix << 8 << shift; // on the first level alone
        int const at = __ffs(int(tooMany)) - 1;
        u32 count = above + sum - own, digit = 255 - 8 * lane;
        if (int(lane) == at)
            for (; count + digits[digit] <= kSorted; --digit)
                count += digits[digit];
        above = __shfl_sync(kAllLanes, count, at);
        prefix = prefix << 8 | __shfl_sync(kAllLanes, digit, at);
        if (above >= kSorted / 2 || shift == 0)
            return (prefix + 1) << shift;
    }
    return 0;
}

// Falling, `size` a power of 2.
TW_INLINE void sortKeys(u64* keys, u32 size)
{
    for (u32 run = 2; run <= size; run *= 2)
        for (u32 d = run / 2; d > 0; d /= 2) {
            for (u32 t = threadIdx.x; t < size / 2; t += kSearchThreads) {
                u32 const i = (t & ~(d - 1)) * 2 | (t & (d - 1));
                u64 const a = keys[i], b = keys[i + d];
                if ((a < b) == ((i & run) == 0)) {
                    keys[i] = b;
                    keys[i + d] = a;
                }
            }
            __syncthreads();
        }
}

// Keys of the list in [begin, end), sorted; how many.
TW_INLINE u32 sortedPart(u64 const* list, u32 listed, u64 begin, u64 end, u64* keys)
{
    __shared__ u32 taken;
    u32 const lane = threadIdx.x & 31;
    if (threadIdx.x == 0)
        taken = 0;
    __syncthreads();
    for (u32 first = 0; first < listed; first += kSearchThreads) {
        u32 const i = first + threadIdx.x;
        u64 const key = i < listed ? list[i] : 0;
        bool const is = key && key >= begin && key < end;
        u32 const lanes = __ballot_sync(kAllLanes, is);
        u32 at = 0;
        if (lane == 0 && lanes)
            at = atomicAdd(&taken, u32(__popc(lanes)));
        at = __shfl_sync(kAllLanes, at, 0) + u32(__popc(lanes & ((1u << lane) - 1)));
        if (is && at < kSorted)
            keys[at] = key;
    }
    __syncthreads();
    u32 const count = min(taken, kSorted);
    u32 size = 2;
    while (size < count)
        size *= 2;
    for (u32 i = count + threadIdx.x; i < size; i += kSearchThreads)
        keys[i] = 0;
    __syncthreads();
    sortKeys(keys, size);
    return count;
}

extern __shared__ unit16 memory[]; // keys, then boxes and classes of a tile

// What a block has found so far, the same in all threads.
struct Progress
{
    u32 rows = 0, kept = 0, seen = 0;
};

// Goes through `size` sorted keys, kTile at most.
TW_INLINE void searchTile(Params const& p, u32 item, u64 const* keys, u32 size, Progress& so)
{
    __shared__ u32 masks[2][32];
    Box* const tile = reinterpret_cast<Box*>(reinterpret_cast<u64*>(memory) + kSorted);
    u32* const tileClasses = reinterpret_cast<u32*>(tile + kTile);
    Box* const kept = static_cast<Box*>(p.kept) + u64(item) * p.keptRoom;
    u32* const keptClasses = static_cast<u32*>(p.keptClasses) + u64(item) * p.keptRoom;
    u32* const found = static_cast<u32*>(p.found) + u64(item) * p.most * 2;
    u32 volatile* const written = static_cast<u32*>(p.ofClass) + u64(item) * 2 * p.classes;
    u32* const seen = static_cast<u32*>(p.ofClass) + (u64(item) * 2 + 1) * p.classes;
    u32 const t = threadIdx.x, lane = t & 31;

    bool isLeft = t < size;
    u32 box = 0, kind = 0xffffffffu;
    Box mine{};
    if (isLeft) {
        box = boxOfKey(p, keys[t]);
        kind = classOfKey(p, keys[t]);
        mine = inOrder(boxOf(p, item, box, kind));
    }
    tile[t] = mine;
    tileClasses[t] = kind;
    __syncthreads();
    if (p.limitOfClass) {
        u32 place = 0; // among the candidates of its class
        if (isLeft) {
            place = *const_cast<u32 volatile*>(&seen[kind]);
            if (so.seen + size > p.limitOfClass)
                for (u32 j = 0; j < t; ++j)
                    place += tileClasses[j] == kind;
        }
        __syncthreads();
        if (isLeft)
            atomicAdd(&seen[kind], 1u);
        isLeft = isLeft && place < p.limitOfClass;
    }
    for (u32 k = 0; isLeft && k < so.kept; ++k)
        if (keptClasses[k] == kind && covers(p, kept[k], mine))
            isLeft = false;
    for (u32 step = 0; so.rows < p.most; ++step) {
        u32 const mask = __ballot_sync(kAllLanes, isLeft);
        if (lane == 0)
            masks[step & 1][t >> 5] = mask;
        __syncthreads();
        u32 const ofWarp = masks[step & 1][lane];
        u32 const warps = __ballot_sync(kAllLanes, ofWarp != 0);
        if (!warps)
            break;
        int const warp = __ffs(int(warps)) - 1;
        u32 const best = u32(warp) * 32 + u32(__ffs(int(__shfl_sync(kAllLanes, ofWarp, warp)))) - 1;
        u32 const bestClass = tileClasses[best];
        bool isWritten = true;
        if (p.mostOfClass) {
            u32 const have = written[bestClass];
            __syncthreads();
            isWritten = have < p.mostOfClass;
            if (t == best)
                written[bestClass] = have + 1;
        }
        if (t == best) {
            isLeft = false;
            if (so.kept < p.keptRoom) {
                kept[so.kept] = mine;
                keptClasses[so.kept] = kind;
            }
            if (isWritten) {
                found[2 * so.rows] = box;
                found[2 * so.rows + 1] = kind;
            }
        } else if (isLeft && kind == bestClass && covers(p, tile[best], mine)) {
            isLeft = false;
        }
        ++so.kept;
        so.rows += isWritten;
    }
    so.seen += size;
    __syncthreads();
}

TW_KERNEL __launch_bounds__(kSearchThreads) detection_search(const __grid_constant__ Params p)
{
    u32 const item = blockIdx.x;
    u32* numbers = static_cast<u32*>(p.numbers) + item * kNumbers;
    u64 const* list = static_cast<u64 const*>(p.list) + u64(item) * p.count * p.classes;
    u64* const keys = reinterpret_cast<u64*>(memory);
    u32 const listed = numbers[kListed], limit = p.limit ? p.limit : 0xffffffffu;
    for (u32 c = threadIdx.x; c < 2 * p.classes; c += kSearchThreads)
        static_cast<u32*>(p.ofClass)[u64(item) * 2 * p.classes + c] = 0;
    __syncthreads();
    Progress so;
    u64 end = ~u64(0);
    while (so.rows < p.most && so.seen < limit) {
        u64 const begin = listed > kSorted ? firstOfBest(list, listed, end) : 0;
        u32 const count = sortedPart(list, listed, begin, end, keys);
        for (u32 first = 0; first < count && so.rows < p.most && so.seen < limit; first += kTile)
            searchTile(p, item, keys + first, min(min(kTile, count - first), limit - so.seen), so);
        if (begin == 0)
            break;
        end = begin;
    }
    if (threadIdx.x == 0)
        numbers[kIsDone] = so.rows >= p.most || so.seen >= limit || !numbers[kIsCut];
    auto const* found = static_cast<u32 const*>(p.found) + u64(item) * p.most * 2;
    if constexpr (!kRows)
        for (u32 row = threadIdx.x; row < so.rows; row += kSearchThreads)
            write(p, item, row, found[2 * row], found[2 * row + 1]);
    finish(p, item, so.rows);
}

} // namespace tw::ops::detection
