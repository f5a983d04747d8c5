// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::conv_f16 {

struct RowParams
{
    void const *x = nullptr, *filters = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;           // threads with work
    cuda::Div vectors, wide, tall; // V channels, COLUMNS outputs of a row, rows
    cuda::i64 pixelX = 0, pixelY = 0, pixelResidual = 0;
    cuda::i32 h = 0, w = 0, outW = 0, padH = 0, padW = 0, strideH = 1, dilationH = 1, pad = 0;
};

} // namespace tw::ops::conv_f16
