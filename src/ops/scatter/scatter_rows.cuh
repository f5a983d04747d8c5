// SPDX-License-Identifier: Apache-2.0
// y = x with updates reduced into its rows: one block has a row (or a part of it) in registers and takes the updates that name it
// in the order of their tuples, so that results do not depend on who comes first. Which those are it finds
//   scatter_scan_rows    by reading all indices
//   scatter_list_rows    in a list, which clear, count, sum, offset and place have made: of each row its tuples, in any order
// A row whose list is longer than what is sorted here reads all indices after all.
//   u32 kListLanes: threads of a block of scatter_list_rows
#pragma once

#include "ops/scatter/reduced.cuh"

namespace tw::ops::scatter {

template <u32 kLanes>
struct Row
{
    static constexpr u32 kItems = 4; // tuples that a thread looks at together
    static constexpr u32 kList = 1024;
    static constexpr u32 kWarps = kLanes / 32;

    struct Shared
    {
        u32 list[kList], unsorted[kList];
        u32 found[kItems][kWarps];
    };

    Params const& p;
    Shared& s;
    u32 slot, first; // first column of this thread
    Number numbers[kColumns];

    TW_INLINE Row(Params const& params, Shared& shared, u32 row, u32 chunk)
        : p(params), s(shared), slot(row), first(chunk * kLanes * kColumns + threadIdx.x)
    {
        each([&](u32 c, Number& n) { n = load<Number>(static_cast<Element const*>(p.x)[idx(slot) * p.block.d + c]); });
    }
    template <class F>
    TW_INLINE void each(F&& f)
    {
#pragma unroll
        for (u32 k = 0; k < kColumns; ++k)
            if (u32 const c = first + k * kLanes; c < p.block.d)
                f(c, numbers[k]);
    }
    TW_INLINE void store()
    {
        each([&](u32 c, Number& n) {
            static_cast<Element*>(p.y)[idx(slot) * p.block.d + c] = ::tw::cuda::store<Element>(n);
        });
    }
    // Tuples list[0..n), in this order.
    TW_INLINE void add(u32 n)
    {
#pragma unroll 4
        for (u32 i = 0; i < n; ++i) {
            Element const* const u = static_cast<Element const*>(p.u) + idx(s.list[i]) * p.block.d;
            each([&](u32 c, Number& v) { v = reduced(v, load<Number>(u[c])); });
        }
    }
    TW_INLINE void scan()
    {
        u32 const lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        u32 listed = 0;
        for (u32 begin = 0; begin < p.tuples; begin += kLanes * kItems) {
            bool mine[kItems], any = false;
#pragma unroll
            for (u32 k = 0; k < kItems; ++k) {
                u32 const t = begin + k * kLanes + threadIdx.x;
                mine[k] = t < p.tuples && slotOf(p, t) == i64(slot);
                any = any || mine[k];
            }
            if (!__syncthreads_or(any))
                continue;
            if (listed + kLanes * kItems > kList) {
                add(listed);
                listed = 0;
                __syncthreads();
            }
            u32 masks[kItems];
#pragma unroll
            for (u32 k = 0; k < kItems; ++k) {
                masks[k] = __ballot_sync(0xffffffffu, mine[k]);
                if (lane == 0)
                    s.found[k][warp] = __popc(masks[k]);
            }
            __syncthreads();
#pragma unroll
            for (u32 k = 0; k < kItems; ++k)
                for (u32 w = 0; w < kWarps; ++w) {
                    if (w == warp && mine[k])
                        s.list[listed + __popc(masks[k] & ((1u << lane) - 1))] = begin + k * kLanes + threadIdx.x;
                    listed += s.found[k][w];
                }
            __syncthreads();
        }
        add(listed);
    }
    // `n` tuples at `tuples`, sorted first.
    TW_INLINE void take(u32 const* tuples, u32 n)
    {
        if (n > kList) {
            scan();
            return;
        }
        for (u32 i = threadIdx.x; i < n; i += kLanes)
            s.unsorted[i] = tuples[i];
        __syncthreads();
        for (u32 i = threadIdx.x; i < n; i += kLanes) {
            u32 const t = s.unsorted[i];
            u32 before = 0;
            for (u32 k = 0; k < n; ++k)
                before += s.unsorted[k] < t;
            s.list[before] = t;
        }
        __syncthreads();
        add(n);
    }
};

TW_KERNEL __launch_bounds__(kScanLanes) scatter_scan_rows(const __grid_constant__ RowParams p)
{
    waitForPrevious();
    releaseDependents();
    __shared__ Row<kScanLanes>::Shared shared;
    Row<kScanLanes> row(p.scatter, shared, blockIdx.x, blockIdx.y);
    row.scan();
    row.store();
}
TW_KERNEL __launch_bounds__(kListLanes) scatter_list_rows(const __grid_constant__ RowParams p)
{
    waitForPrevious();
    releaseDependents();
    __shared__ Row<kListLanes>::Shared shared;
    Row<kListLanes> row(p.scatter, shared, blockIdx.x, blockIdx.y);
    row.take(p.order + p.offsets[blockIdx.x], p.counts[blockIdx.x]);
    row.store();
}

// ---- Lists of tuples

TW_KERNEL __launch_bounds__(256) scatter_clear(const __grid_constant__ RowParams p)
{
    waitForPrevious();
    releaseDependents();
    if (u32 const i = threadIndex(); i < p.scatter.slots)
        p.counts[i] = 0;
}
TW_KERNEL __launch_bounds__(256) scatter_count(const __grid_constant__ RowParams p)
{
    waitForPrevious();
    releaseDependents();
    u32 const t = threadIndex();
    if (t >= p.scatter.tuples)
        return;
    i64 const slot = slotOf(p.scatter, t);
    p.places[t] = slot < 0 ? ~0u : atomicAdd(p.counts + slot, 1u);
}
// The sum of `v` over threads of the block before this one, and over all.
struct Sums
{
    u32 before, all;
};
TW_INLINE Sums sumOver(u32 v)
{
    __shared__ u32 warps[kSliceLanes / 32];
    u32 const lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 sum = v;
    for (u32 d = 1; d < 32; d *= 2)
        if (u32 const other = __shfl_up_sync(0xffffffffu, sum, d); lane >= d)
            sum += other;
    __syncthreads(); // of the call before
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    u32 before = sum - v, all = 0;
    for (u32 w = 0; w < kSliceLanes / 32; ++w) {
        before += w < warp ? warps[w] : 0;
        all += warps[w];
    }
    return {before, all};
}
// Of a slice of the counts.
TW_KERNEL __launch_bounds__(kSliceLanes) scatter_sum(const __grid_constant__ RowParams p)
{
    waitForPrevious();
    releaseDependents();
    u32 sum = 0;
    for (u32 i = threadIdx.x; i < kSlice; i += kSliceLanes)
        if (u32 const slot = blockIdx.x * kSlice + i; slot < p.scatter.slots)
            sum += p.counts[slot];
    Sums const sums = sumOver(sum);
    if (threadIdx.x == 0)
        p.sums[blockIdx.x] = sums.all;
}
TW_KERNEL __launch_bounds__(kSliceLanes) scatter_offset(const __grid_constant__ RowParams p)
{
    waitForPrevious();
    releaseDependents();
    u32 before = 0;
    for (u32 b = threadIdx.x; b < blockIdx.x; b += kSliceLanes)
        before += p.sums[b];
    u32 at = sumOver(before).all;
    for (u32 i = 0; i < kSlice; i += kSliceLanes) {
        u32 const slot = blockIdx.x * kSlice + i + threadIdx.x;
        Sums const sums = sumOver(slot < p.scatter.slots ? p.counts[slot] : 0);
        if (slot < p.scatter.slots)
            p.offsets[slot] = at + sums.before;
        at += sums.all;
    }
}
TW_KERNEL __launch_bounds__(256) scatter_place(const __grid_constant__ RowParams p)
{
    waitForPrevious();
    releaseDependents();
    u32 const t = threadIndex();
    if (t < p.scatter.tuples && p.places[t] != ~0u)
        p.order[p.offsets[slotOf(p.scatter, t)] + p.places[t]] = t;
}

} // namespace tw::ops::scatter
