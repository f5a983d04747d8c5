// SPDX-License-Identifier: Apache-2.0
// The logarithm of sums of exponentials, as an element type and an accumulator with which kernels for sums give it.
// Stands before reduce_arithmetic.cuh, which gives other elements their accumulators.
#pragma once

#include "families/reduction/cuda_log_sum.cuh"

namespace tw::ops::reduce {

template <class Storage>
struct Exponent
{
    Storage v;
};
using reduction::LogSum;
TW_INLINE float result(LogSum const& v, LogSum const&)
{
    return v.most + logf(v.sum);
}

template <class Type>
struct NumbersOf;
template <class Storage>
struct NumbersOf<Exponent<Storage>>
{
    using Read = LogSum;
    using Joined = LogSum;
};

} // namespace tw::ops::reduce

namespace tw::cuda {

template <class Storage>
struct From<ops::reduce::Exponent<Storage>>
{
    static TW_INLINE ops::reduce::Exponent<Storage> value(float v) { return {From<Storage>::value(v)}; }
};
template <>
struct To<ops::reduce::LogSum>
{
    template <class Storage>
    static TW_INLINE ops::reduce::LogSum from(ops::reduce::Exponent<Storage> x)
    {
        return ops::reduce::LogSum(load<float>(x.v));
    }
    static TW_INLINE ops::reduce::LogSum from(ops::reduce::LogSum v) { return v; }
};

} // namespace tw::cuda
