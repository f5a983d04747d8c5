// SPDX-License-Identifier: Apache-2.0
// What plain kernels sum up: i8, exactly. Their sibling is plain_floats.cuh. After integerEndSource().
#pragma once

#include "kernels/cuda/common/integer_end.cuh"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::cuda {

using Sum = i32;
// Neighbours along what is summed, as they lie in shared memory: a byte each.
using Factors = i32;
constexpr int kFactors = 4;

// `at(i)`: the element i places behind the first; i32.
template <class At>
TW_INLINE Factors gather(At at)
{
    u32 word = 0;
#pragma unroll
    for (int i = 0; i < kFactors; ++i)
        word |= (u32(at(i)) & 0xffu) << (8 * i);
    return i32(word);
}
TW_INLINE void accumulate(Sum& sum, Factors a, Factors b)
{
    sum = __dp4a(a, b, sum);
}

// Stores element `at` of y, of this channel.
TW_INLINE void finishSum(IntegerEndArgs const& e, void* y, i64 at, i32 channel, Sum sum)
{
    EndResidual residual{};
    if constexpr (END_RESIDUAL)
        residual = static_cast<EndResidual const*>(e.residual)[at];
    float const t = endOf(sum, endScale(e, channel), endBias(e, channel), residual, endNumbers(e));
    endStore(static_cast<EndElement*>(y) + at, t, e.table);
}

} // namespace tw::cuda
