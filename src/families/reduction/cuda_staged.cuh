// SPDX-License-Identifier: Apache-2.0
// Elements that lie together, of a block, by way of shared memory: wherever rows begin, memory sees packs of 16 bytes.
#pragma once

#include "kernels/cuda/common/async_copies.cuh"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::reduction {

// Into shared memory, for all threads to see. PACKS: `from` is aligned to 16 bytes; `to` is in any case.
template <int THREADS, bool PACKS, class T>
TW_INLINE void stageIn(T* to, T const* from, int elements)
{
    constexpr int V = 16 / int(sizeof(T));
    int const packed = PACKS ? elements / V * V : 0;
#pragma unroll 4
    for (int k = threadIdx.x * V; k < packed; k += THREADS * V)
        copyAsync16(sharedAddress(to + k), from + k, true);
    copyCommit();
#pragma unroll 1
    for (int k = packed + threadIdx.x; k < elements; k += THREADS)
        to[k] = from[k];
    copyWait<0>();
    __syncthreads();
}
// From there, when all threads have written it.
template <int THREADS, class T>
TW_INLINE void stageOut(T* to, T const* from, int elements)
{
    constexpr int V = 16 / int(sizeof(T));
    int const packed = elements / V * V;
    __syncthreads();
#pragma unroll 4
    for (int k = threadIdx.x * V; k < packed; k += THREADS * V)
        *reinterpret_cast<Pack<u32, 4>*>(to + k) = *reinterpret_cast<Pack<u32, 4> const*>(from + k);
#pragma unroll 1
    for (int k = packed + threadIdx.x; k < elements; k += THREADS)
        to[k] = from[k];
}

} // namespace tw::ops::reduction
