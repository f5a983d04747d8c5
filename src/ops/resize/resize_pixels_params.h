// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::resize {

struct PixelParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;           // threads with work
    cuda::Div vectors, wide, tall; // 16 bytes of channels, columns and rows of y
    cuda::i64 pixelX = 0, pixelY = 0;
    cuda::i64 in[2] = {}, over[2] = {}, under[2] = {}; // rows, columns: size of x, the scale as a fraction
};

} // namespace tw::ops::resize
