// SPDX-License-Identifier: Apache-2.0
// What convolutions share that are implicit matrix products: sums in shared memory, and blocks that share a tile.
#pragma once

#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/common/matrix.cuh"
#include "kernels/cuda/common/params.h"

namespace tw::cuda {

TW_INLINE int divide(int n, Div const& v)
{
    return int((__umulhi(u32(n), v.m) + u32(n)) >> v.s);
}
TW_INLINE float4 loadFour(u32 at)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}
TW_INLINE void storeTwo(u32 at, float a, float b)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(a), "f"(b) : "memory");
}

// Blocks that share a tile: a cluster, from capability 9.0 on.
constexpr bool HAS_CLUSTERS = __CUDA_ARCH__ >= 900;
TW_INLINE int splitRank()
{
    if constexpr (HAS_CLUSTERS)
        return clusterRank();
    return 0;
}
TW_INLINE int splitCount()
{
    u32 r = 1;
    if constexpr (HAS_CLUSTERS)
        asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
    return r;
}
TW_INLINE void splitSync()
{
    if constexpr (HAS_CLUSTERS)
        clusterSync();
    else
        __syncthreads();
}
// In another one of them, and what lies there.
TW_INLINE u32 addressIn(u32 at, u32 rank)
{
    if constexpr (HAS_CLUSTERS)
        return addressAt(at, rank);
    return at;
}
TW_INLINE float4 loadFourOf(u32 at)
{
    if constexpr (HAS_CLUSTERS) {
        float4 v;
        asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                     : "r"(at)
                     : "memory");
        return v;
    }
    return loadFour(at);
}

} // namespace tw::cuda
