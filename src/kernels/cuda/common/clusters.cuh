// SPDX-License-Identifier: Apache-2.0
// Blocks of a cluster (sm_90).
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

TW_INLINE u32 clusterRank()
{
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
TW_INLINE void clusterArrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
TW_INLINE void clusterWait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
TW_INLINE void clusterSync()
{
    clusterArrive();
    clusterWait();
}
TW_INLINE u32 addressAt(u32 at, u32 rank)
{
    u32 v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(v) : "r"(at), "r"(rank));
    return v;
}
// To another block's shared memory, at what addressAt() gave.
TW_INLINE void storeCluster(u32 at, float a, float b, float c, float d)
{
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(a), "f"(b), "f"(c), "f"(d)
                 : "memory");
}
TW_INLINE void storeCluster(u32 at, float a, float b)
{
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(a), "f"(b) : "memory");
}

} // namespace tw::cuda
