// SPDX-License-Identifier: Apache-2.0
// A row of tokens for TEAM blocks, of a cluster where there are several: sums over all of their threads, which all get the result.
//   int TEAM, kThreads
#pragma once

#include "families/decoding/block.cuh"
#include "kernels/cuda/common/clusters.cuh"

namespace tw::ops::decoding {

constexpr i32 kTeamThreads = TEAM * kThreads;

TW_INLINE i32 teamRank()
{
    return TEAM > 1 ? i32(clusterRank()) : 0;
}
TW_INLINE i32 teamThread()
{
    return teamRank() * kThreads + i32(threadIdx.x);
}
TW_INLINE void teamSync()
{
    if constexpr (TEAM > 1)
        clusterSync();
    else
        __syncthreads();
}
// What block `rank` has at this place of its shared memory.
TW_INLINE u64 loadOf(u64 const* at, u32 rank)
{
    u64 v;
    asm volatile("ld.shared::cluster.u64 %0, [%1];"
                 : "=l"(v)
                 : "r"(addressAt(u32(__cvta_generic_to_shared(at)), rank))
                 : "memory");
    return v;
}

template <class F>
TW_INLINE u64 ofTeam(u64 v, F f)
{
    u64 all = ofBlock(v, f);
    if constexpr (TEAM > 1) {
        __shared__ u64 own;
        if (threadIdx.x == 0)
            own = all;
        __syncwarp();
        clusterSync();
        all = 0;
        for (u32 b = 0; b < TEAM; ++b)
            all = f(all, loadOf(&own, b));
        clusterSync(); // all have read
    }
    return all;
}
TW_INLINE u64 sumOfTeam(u64 v)
{
    return ofTeam(v, [](u64 a, u64 b) { return a + b; });
}
TW_INLINE u64 mostOfTeam(u64 v)
{
    return ofTeam(v, [](u64 a, u64 b) { return a > b ? a : b; });
}

struct LogSum
{
    float most = 0;
    double log = 0; // of the sum, beside the largest
    // Of a token's score.
    TW_INLINE double of(float score) const { return double(score) - double(most) - log; }
};
template <class T>
TW_INLINE LogSum logSumOf(T const* x, i32 count)
{
    u64 best = 0;
#pragma unroll 4
    for (i32 i = teamThread(); i < count; i += kTeamThreads) {
        u64 const key = keyOf(scoreOf(load<float>(x[i])), u32(i));
        best = key > best ? key : best;
    }
    best = mostOfTeam(best);
    LogSum sum;
    if (best == 0)
        return sum;
    sum.most = scoreOfKey(best);
    u64 total = 0;
#pragma unroll 4
    for (i32 i = teamThread(); i < count; i += kTeamThreads)
        total += weightOf(sum.most - scoreOf(load<float>(x[i])));
    sum.log = logOfSum(sumOfTeam(total));
    return sum;
}

} // namespace tw::ops::decoding
