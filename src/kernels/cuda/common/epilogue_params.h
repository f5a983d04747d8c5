// SPDX-License-Identifier: Apache-2.0
// Where a product's sums go.
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::cuda {

// The host's Element is void.
template <class Element>
struct OutputOf
{
    Element* y = nullptr;
    float const* bias = nullptr;
    Element const* residual = nullptr;
    i64 ldy = 0, batchY = 0; // elements between rows and between batches
    i64 ldResidual = 0;      // between rows of the residual; its batches are as far apart as y's
    i32 m = 0, n = 0;        // rows and columns
};

// What the end of sums of i8 reads, in GPU memory.

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
