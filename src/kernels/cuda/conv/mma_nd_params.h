// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/integer_end_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::cuda::conv_nd {

constexpr int kMostPhases = 16;
constexpr int kStepK = 32, kIntegerStepK = 64; // elements of k that a step takes: 64 bytes, of FP32 128

// Along one axis: position q of phase p reads x at q * stride + begin[p] + t * step for its taps t < count[p], and
// writes y at q * phases + p.
struct Axis
{
    i32 in = 1, out = 1, phases = 1, stride = 1, step = 1;
    i32 taps = 1; // of the phase that has most
    i32 begin[kMostPhases] = {}, count[kMostPhases] = {1};

#ifndef __CUDACC_RTC__
    i64 positions() const
    {
        return (i64(out) + phases - 1) / phases;
    }
#endif
};

template <class Element>
struct ArgsOf
{
    Element const *x = nullptr, *filters = nullptr, *residual = nullptr;
    float const* bias = nullptr; // [k]; null: none
    Element* y = nullptr;
    i64 pixelX = 0, rowX = 0, planeX = 0, imageX = 0, pixelY = 0, pixelResidual = 0; // elements
    i32 m = 0, n = 0;                                                                // rows, filters of a group
    i32 groups = 1, channels = 1, inner = 1, paddedK = 0, stepsK = 0, unused = 0;
    Axis axes[3];
    Div positions[3];
};
// For i8: bias and residual are parts of the end, and y's type is its.
template <class Element>
struct IntegerArgsOf : ArgsOf<Element>
{
    IntegerEndArgs end;
    i32 filtersY = 0; // those there are scales of
    i32 unusedY = 0;
};

} // namespace tw::cuda::conv_nd
