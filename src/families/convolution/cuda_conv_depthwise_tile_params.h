// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::conv_f16 {

struct TileParams
{
    void const *x = nullptr, *filters = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    cuda::Div slices, tilesW, tilesH; // of channels, of y
    cuda::u32 tiles = 0, step = 0;    // of one slice; blocks that share them
    cuda::i64 pixelX = 0, pixelY = 0, pixelResidual = 0;
    cuda::i32 vectors = 0, h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0, pad = 0;
};

} // namespace tw::ops::conv_f16
