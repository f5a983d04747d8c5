// SPDX-License-Identifier: Apache-2.0
// What convolutions by mma.sync share: sums in shared memory, and blocks that share a tile.
#pragma once

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

// Blocks that share a tile.
#if __CUDA_ARCH__ >= 900
TW_INLINE u32 splitRank()
{
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
TW_INLINE u32 splitCount()
{
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
    return r;
}
TW_INLINE void splitSync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
TW_INLINE u32 addressIn(u32 at, u32 rank)
{
    u32 there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}
TW_INLINE float4 loadFourOf(u32 at) // what addressIn() gave
{
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}
#else
TW_INLINE u32 splitRank()
{
    return 0;
}
TW_INLINE u32 splitCount()
{
    return 1;
}
TW_INLINE void splitSync()
{
    __syncthreads();
}
TW_INLINE u32 addressIn(u32 at, u32)
{
    return at;
}
TW_INLINE float4 loadFourOf(u32 at)
{
    return loadFour(at);
}
#endif

} // namespace tw::cuda
