// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops {

struct PlainConvolutionParams
{
    void const *x = nullptr, *w = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;                                           // elements of y
    cuda::i64 c = 0, k = 0, groupC = 0, positions = 0;             // positions: batch times those of one plane of y
    cuda::Div groupK, channels, out[3], window[3], tilesK, tilesP; // channels: those of y
    cuda::i64 in[3] = {}, stride[3] = {}, dilation[3] = {}, before[3] = {};
    cuda::IntegerEndArgs end; // of sums of i8
};

} // namespace tw::ops
