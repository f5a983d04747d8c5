// SPDX-License-Identifier: Apache-2.0
// The logarithm of sums of exponentials, as an element type and an accumulator with which kernels for sums give it.
// Stands before reduce_arithmetic.cuh, which gives other elements their accumulators.
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::reduce {

template <class Storage>
struct Exponent
{
    Storage v;
};
// The largest number, and the sum of exponentials of differences from it.
struct LogSum
{
    float most, sum;

    LogSum() = default;
    TW_INLINE LogSum(float x) : most(x), sum(1) {}
    template <class Whole>
    TW_INLINE LogSum(Whole) : most(-__int_as_float(0x7f800000)), sum(0)
    {} // of no number: identity() and counts are whole
};
TW_INLINE LogSum join(LogSum const& a, LogSum const& b)
{
    // Equal ones may be infinite. A NaN makes the sum one, and that stays.
    float const less = a.most == b.most ? 1.0f : __expf(-fabsf(a.most - b.most));
    LogSum y;
    y.most = a.most > b.most ? a.most : b.most;
    y.sum = a.most > b.most ? fmaf(b.sum, less, a.sum) : fmaf(a.sum, less, b.sum);
    return y;
}
TW_INLINE float result(LogSum const& v, LogSum const&)
{
    return v.most + logf(v.sum);
}
TW_INLINE LogSum __shfl_xor_sync(u32 mask, LogSum v, int d)
{
    v.most = ::__shfl_xor_sync(mask, v.most, d);
    v.sum = ::__shfl_xor_sync(mask, v.sum, d);
    return v;
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
