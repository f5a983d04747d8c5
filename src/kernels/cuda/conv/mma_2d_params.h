// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/params.h"

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
