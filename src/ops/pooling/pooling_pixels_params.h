// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::pooling {

struct PixelsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;             // threads with work
    cuda::Div vectors, wide, groups; // 16 bytes of channels, columns, ROWS rows
    cuda::Div slices;                // of channels
    cuda::i64 pixelX = 0, pixelY = 0;
    cuda::i32 h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0, afterH = 0, afterW = 0;
};

} // namespace tw::ops::pooling
