// SPDX-License-Identifier: Apache-2.0
// Sums of weights of a row, by all threads of a block; all of them get the result.
#pragma once

#include "families/decoding/row_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::decoding {

using namespace tw::cuda;

template <class F>
TW_INLINE u64 ofBlock(u64 v, F f)
{
    __shared__ u64 scratch[32];
    return blockReduce(v, u64(0), scratch, f);
}
TW_INLINE u64 sumOfBlock(u64 v)
{
    return ofBlock(v, [](u64 a, u64 b) { return a + b; });
}
TW_INLINE u64 mostOfBlock(u64 v)
{
    return ofBlock(v, [](u64 a, u64 b) { return a > b ? a : b; });
}

// Of two tokens the one with the larger score comes first, then the one with the lower id; 0 is none.
TW_INLINE u64 keyOf(float score, u32 id)
{
    return isNever(score) ? 0 : u64(orderOf(score)) << 32 | (0xffffffffu - id);
}
TW_INLINE float scoreOfKey(u64 key)
{
    u32 const bits = u32(key >> 32);
    return __uint_as_float(bits & 0x80000000u ? bits ^ 0x80000000u : ~bits);
}
TW_INLINE i32 idOfKey(u64 key)
{
    return i32(0xffffffffu - u32(key));
}

} // namespace tw::ops::decoding
