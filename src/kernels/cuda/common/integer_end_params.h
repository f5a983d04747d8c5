// SPDX-License-Identifier: Apache-2.0
// What the end of sums of i8 reads, in GPU memory.
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::cuda {

struct IntegerEndArgs
{
    float const* scale = nullptr;   // of channel k at k * scaleStep
    float const* bias = nullptr;    // [channels]
    void const* residual = nullptr; // laid out as y
    // One number each; null where there is none.
    float const *innerScale = nullptr, *residualScale = nullptr, *outputScale = nullptr;
    i8 const* table = nullptr; // [256], of -128 first
    i32 scaleStep = 0;         // 0: one scale for all channels; 1
};

} // namespace tw::cuda
