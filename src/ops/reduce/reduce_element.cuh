// SPDX-License-Identifier: Apache-2.0
// Element types with a function in front of the sum or behind it: they read and store like the numbers that they hold,
// so that kernels for numbers take them as their T. Stands before reduce_arithmetic.cuh, which gives numbers their
// accumulators.
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/reduce/kind_params.h"

namespace tw::ops::reduce {

// BEFORE, AFTER: a Before, an After; no exponentials
template <class Storage, int BEFORE, int AFTER>
struct Element
{
    Storage v;

    TW_INLINE operator float() const
    {
        float const x = load<float>(v);
        return Before(BEFORE) == Before::kAbs ? fabsf(x) : Before(BEFORE) == Before::kSquare ? x * x : x;
    }
};

} // namespace tw::ops::reduce

namespace tw::cuda {

template <class Storage, int BEFORE, int AFTER>
struct From<ops::reduce::Element<Storage, BEFORE, AFTER>>
{
    static TW_INLINE ops::reduce::Element<Storage, BEFORE, AFTER> value(float v)
    {
        using ops::reduce::After;
        return {From<Storage>::value(After(AFTER) == After::kSqrt  ? sqrtf(v)
                                     : After(AFTER) == After::kLog ? logf(v)
                                                                   : v)};
    }
};

} // namespace tw::cuda
