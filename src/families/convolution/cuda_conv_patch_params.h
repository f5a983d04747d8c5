// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"

namespace tw::ops {

struct PatchParams : cuda::OutputOf<void> // m: columns of y
{
    void const* x = nullptr;
    void const* filters = nullptr;
    cuda::i64 pixelX = 0;
    cuda::i32 d = 0, h = 0, w = 0, outD = 0, outH = 0, padD = 0, padH = 0, padW = 0;
    cuda::i32 units = 0; // of 8 channels, that a pixel of x has
    cuda::u32 tilesW = 1, tilesH = 1, tilesD = 1;
};

} // namespace tw::ops
