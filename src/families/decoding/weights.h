// SPDX-License-Identifier: Apache-2.0
// Sums of weights of a row on CPUs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/element.h"
#include "families/decoding/row_params.h"

namespace tw::ops::decoding {

template <class T>
float scoreAt(T const* x, int64_t i)
{
    return scoreOf(loadElement(x[i]));
}

struct LogSum
{
    float most = never();
    double log = 0; // of the sum, beside the largest
    // Of a token's score.
    double of(float score) const { return double(score) - double(most) - log; }
};
template <class T>
LogSum logSumOf(T const* x, int64_t count)
{
    LogSum sum;
    for (int64_t i = 0; i < count; ++i)
        sum.most = std::max(sum.most, scoreAt(x, i));
    uint64_t total = 0;
    if (!isNever(sum.most))
        for (int64_t i = 0; i < count; ++i)
            total += weightOf(sum.most - scoreAt(x, i));
    sum.log = total > 0 ? logOfSum(total) : 0;
    return sum;
}

} // namespace tw::ops::decoding
