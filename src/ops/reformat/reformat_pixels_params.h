// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::reformat {

struct PixelParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::Div blocksC, blocksP, plane;             // of an image; a plane's pixels
    cuda::i64 channels = 0, pixels = 0, pixel = 0; // pixel: elements from one to the next
    cuda::i32 groupShift = 0;                      // 2^shift groups of 8 channels for a block
};

} // namespace tw::ops::reformat
