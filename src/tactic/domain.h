// SPDX-License-Identifier: Apache-2.0
// What an op says of its numbers: which its inputs may hold, and how far a kernel may be from the reference.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace tw::ops {

// Values that an input may take: uniform in [lo, hi]; integers only when `integer`.
struct Domain
{
    double lo = -1;
    double hi = 1;
    bool integer = false;
    bool specials = false;  // sprinkle NaN, infinities, -0 (only where the op says what they give)
    bool ascending = false; // each number is so much above the one before, the first one is 0

    // Every number of an integer type.
    static constexpr Domain all(DataType t)
    {
        return {numberType(t).lowest, numberType(t).largest, true, false, false};
    }
};

// |got - want| <= absolute * max|want| + relative * |want| for each element; NaN equals NaN, an infinity itself.
// Integers differ by no more than `integers`; bools are compared exactly.
struct Tolerance
{
    double absolute = 1e-5;
    double relative = 1e-5;
    double integers = 0; // 1 where rounding errors of floats may come before a rounding to integers
    double scale = 0;    // of what results come from by cancelling; `absolute` is of this or of the largest result
    // A little more than storing rounds (2^-10 for FP16); of FP32, what sums of some products lose.
    static Tolerance forType(DataType t)
    {
        double const stored = 1.024 / double(int64_t(1) << numberType(t).mantissaBits);
        return isNarrowFloat(t) ? Tolerance{stored, stored, 0, 0} : Tolerance{};
    }
    // Of FP32 results whose factors were rounded to as many bits as FP16 has.
    Tolerance forTf32() const { return {std::max(absolute, 1e-3), std::max(relative, 1e-3), integers, scale}; }
};

} // namespace tw::ops
