// SPDX-License-Identifier: Apache-2.0
// A sum of exponentials that cannot overflow, as what is joined in place of numbers.
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::reduction {

// The largest number, and the sum of exponentials of differences from it.
struct LogSum
{
    float most, sum;

    LogSum() = default;
    TW_INLINE LogSum(float x) : most(x), sum(1) {}
    TW_INLINE LogSum(float m, float s) : most(m), sum(s) {}
    template <class Whole>
    TW_INLINE LogSum(Whole) : most(-__int_as_float(0x7f800000)), sum(0)
    {} // of no number: identities and counts are whole
};
// `power`: the exponential.
template <class F>
TW_INLINE LogSum join(LogSum const& a, LogSum const& b, F power)
{
    // Equal ones may be infinite. A NaN makes the sum one, and that stays.
    float const less = a.most == b.most ? 1.0f : power(-fabsf(a.most - b.most));
    LogSum y;
    y.most = a.most > b.most ? a.most : b.most;
    y.sum = a.most > b.most ? fmaf(b.sum, less, a.sum) : fmaf(a.sum, less, b.sum);
    return y;
}
TW_INLINE LogSum join(LogSum const& a, LogSum const& b)
{
    return join(a, b, [](float x) { return __expf(x); });
}
TW_INLINE LogSum __shfl_xor_sync(u32 mask, LogSum v, int d)
{
    v.most = ::__shfl_xor_sync(mask, v.most, d);
    v.sum = ::__shfl_xor_sync(mask, v.sum, d);
    return v;
}

} // namespace tw::ops::reduction
