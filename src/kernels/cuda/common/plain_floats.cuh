// SPDX-License-Identifier: Apache-2.0
// What plain kernels sum up: floats. Their sibling is plain_integers.cuh.
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::cuda {

using Sum = float;
// Neighbours along what is summed, as they lie in shared memory.
using Factors = float;
constexpr int kFactors = 1;

// `at(i)`: the element i places behind the first; float.
template <class At>
TW_INLINE Factors gather(At at)
{
    return at(0);
}
TW_INLINE void accumulate(Sum& sum, Factors a, Factors b)
{
    sum += a * b;
}

} // namespace tw::cuda
