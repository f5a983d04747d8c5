// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"

namespace tw::cuda::conv_f16 {

template <class Element>
struct ArgsOf : OutputOf<Element>
{
    i32 stepsK = 0;
    i32 inner = 1, middle = 1, outer = 1; // sizes of k, the innermost first: c, s, r, or s, r, c when planar
    Element const* x = nullptr;
    Element const* filters = nullptr;
    i64 imageX = 0, rowX = 0, columnX = 0, channelX = 0; // strides of x
    i32 h = 0, w = 0, outH = 0, outW = 0, strideH = 1, strideW = 1, padH = 0, padW = 0, dilationH = 1, dilationW = 1;
    i32 paddedK = 0, groupC = 0; // channels of a group
};

} // namespace tw::cuda::conv_f16
