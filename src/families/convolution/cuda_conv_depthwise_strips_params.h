// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::conv_f16 {

struct StripParams
{
    void const *x = nullptr, *filters = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;          // threads, idle ones too
    cuda::Div wide, slices, tall; // COLUMNS outputs, SLICE vectors, ROWS outputs
    cuda::i64 pixelX = 0, pixelY = 0, pixelResidual = 0;
    cuda::i32 vectors = 0, h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0, pad = 0;
};

} // namespace tw::ops::conv_f16
