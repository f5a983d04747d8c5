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

} // namespace tw::ops::reduce
