// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw::ops::pooling {

enum class Kind : int // same numbers as nvinfer1::PoolingType
{
    kMax = 0,
    kAverage = 1,
    kMaxAverageBlend = 2,
};

} // namespace tw::ops::pooling
