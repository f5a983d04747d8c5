// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::quantize {

struct PixelsParams
{
    void const* x = nullptr;
    float const* scale = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;                // threads
    cuda::Div pixels, groups;           // of an image; of 16 channels
    cuda::i64 channels = 0, planes = 0; // planes: from image to image of x, elements
    cuda::i64 pixelY = 0;               // from pixel to pixel of y
    cuda::i32 scaleStep = 0, pad = 0;   // 0: one scale; 1: one for each channel
};

} // namespace tw::ops::quantize
