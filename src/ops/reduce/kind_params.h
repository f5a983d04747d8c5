// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw::ops::reduce {

enum class Kind : int // same numbers as nvinfer1::ReduceOperation
{
    kSum = 0,
    kProd = 1,
    kMax = 2,
    kMin = 3,
    kAvg = 4,
};

// What becomes of each element of x before it is joined with others.
enum class Before : int
{
    kNothing = 0,
    kAbs = 1,
    kSquare = 2,
    kExp = 3, // of a sum with kLog behind it alone
};
// What becomes of the result.
enum class After : int
{
    kNothing = 0,
    kSqrt = 1,
    kLog = 2,
};

} // namespace tw::ops::reduce
