// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
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

namespace tw::cuda::conv_2d {

// A pixel of y is ldy from the one before, and of FP32 gapY more after each row; there bias and residual may be null.
// Stride: of rows and columns of x.
template <class Element, class Stride>
struct ArgsOf : OutputOf<Element>
{
    i32 stepsK = 0;
    i32 inner = 1, middle = 1, outer = 1; // sizes of k, the innermost first: c, s, r, or s, r, c when planar
    Element const* x = nullptr;
    Element const* filters = nullptr;
    i64 imageX = 0; // strides of x, with those below
    i64 gapY = 0;
    i64 groupX = 0;                // elements from a group's x to the next one's
    i64 groupRowY = 0, groupY = 0; // of y: for group / groupsAcross, and for the remainder
    Stride rowX = 0, columnX = 0, channelX = 0;
    i32 groupsAcross = 1, groupBias = 0;
    i32 h = 0, w = 0, strideH = 1, strideW = 1, padH = 0, padW = 0, dilationH = 1, dilationW = 1;
    i32 paddedK = 0;
    Div outH, outW;
};

} // namespace tw::cuda::conv_2d
