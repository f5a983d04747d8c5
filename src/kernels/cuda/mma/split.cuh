// SPDX-License-Identifier: Apache-2.0
// Blocks of a cluster that share k: each gets everybody's sums of its part of each warp's columns, 16 bytes a thread, and
// adds them up.
//   int SPLIT; bool CLUSTERS
#pragma once

#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/common/matrix.cuh"
#include "kernels/cuda/mma/warps.cuh"

namespace tw::cuda::product {

constexpr int PART = WN / 8 / (CLUSTERS ? SPLIT : 1); // fours of 16 rows that a thread has
TW_INLINE float asFloat(float v)
{
    return v;
}
TW_INLINE float asFloat(i32 v)
{
    return __int_as_float(v);
}
TW_INLINE void addBits(float& v, u32 x)
{
    v += __uint_as_float(x);
}
TW_INLINE void addBits(i32& v, u32 x)
{
    v += i32(x);
}
template <class Sums>
TW_INLINE void share(Sums const& sums, typename Sums::Values const& values, u32 base, int rank)
{
    clusterSync(); // all stages are read
#pragma unroll
    for (int o = 0; o < SPLIT; ++o) {
        u32 const to = addressAt(base + (rank * BLOCKS_M * PART * THREADS + sums.tid) * 16, o);
#pragma unroll
        for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
            for (int j = 0; j < PART; ++j) {
                auto const* const v = Sums::four(values, i, o * PART + j);
                storeCluster(to + (i * PART + j) * (THREADS * 16), asFloat(v[0]), asFloat(v[1]), asFloat(v[2]),
                             asFloat(v[3]));
            }
    }
    clusterSync();
}
// Of 16 rows.
template <class T>
TW_INLINE void addUp(T (&v)[PART * 4], u32 base, int i, int tid)
{
#pragma unroll
    for (int o = 0; o < SPLIT; ++o)
#pragma unroll
        for (int j = 0; j < PART; ++j) {
            Unit const x = loadSharedUnit(base + (((o * BLOCKS_M + i) * PART + j) * THREADS + tid) * 16);
#pragma unroll
            for (int e = 0; e < 4; ++e)
                addBits(v[j * 4 + e], x.v[e]);
        }
}

} // namespace tw::cuda::product
