// SPDX-License-Identifier: Apache-2.0
// Kernels of a stream that overlap.
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::cuda {

// Lets the next kernel of the stream begin its part that does not depend on this one; waits for the one before. Products and
// convolutions release behind their own wait: before it, blocks of three kernels are there at a time, and a kernel's pile up on some
// multiprocessors (H200, FP16: ViT-B/16 0.955, MobileNetV2 0.967 of the time). Norms of rows, and
// products and attention of few rows, are so short that they release first (GPT-2's step 0.960 of the time).
TW_INLINE void releaseDependents()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
TW_INLINE void waitForPrevious()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Has bytes brought into L2, and not into L1, which keeps what it has when another multiprocessor writes. Addresses and sizes are multiples of 16.
TW_INLINE void prefetchToL2(void const* at, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(at), "r"(bytes) : "memory");
#endif
}

// A number that a kernel in front may yet write, as it is now: not by way of L1, where later reads would find it.
TW_INLINE i32 glanceAt(i32 const* at)
{
    i32 v;
    asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}

} // namespace tw::cuda
