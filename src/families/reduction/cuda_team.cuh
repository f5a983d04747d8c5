// SPDX-License-Identifier: Apache-2.0
// Threads that work on a set together: its number, their places, what they have, joined.
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::reduction {

struct Alone
{
    static TW_INLINE idx set() { return threadIndex(); }
    static TW_INLINE idx lane() { return 0; }
    static TW_INLINE idx lanes() { return 1; }
    template <class A, class F>
    static TW_INLINE A join(A v, A, F)
    {
        return v;
    }
};
struct Warp
{
    static TW_INLINE idx set() { return threadIndex() / 32; }
    static TW_INLINE idx lane() { return threadIdx.x % 32; }
    static TW_INLINE idx lanes() { return 32; }
    template <class A, class F>
    static TW_INLINE A join(A v, A, F f)
    {
        return warpReduce(v, f);
    }
};
struct Block
{
    static TW_INLINE idx set() { return blockIdx.x; }
    static TW_INLINE idx lane() { return threadIdx.x; }
    static TW_INLINE idx lanes() { return blockDim.x; }
    template <class A, class F>
    static TW_INLINE A join(A v, A identity, F f)
    {
        __shared__ A scratch[32]; // one for all: a block waits before it writes there
        return blockReduce(v, identity, scratch, f);
    }
};

} // namespace tw::ops::reduction
