// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::reformat {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 channels = 0, pixels = 0;
    cuda::Div xVector, yVector; // channels that lie together: 1 in planes, the pixel stride where all do
    cuda::i64 xVectors = 1, yVectors = 1;
    cuda::i64 yChannels = 0; // those of y's storage that are written: zeros after the channels
    cuda::Div tilesC, tilesP;
};

struct PixelParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::Div blocksC, blocksP, plane;             // of an image; a plane's pixels
    cuda::i64 channels = 0, pixels = 0, pixel = 0; // pixel: elements from one to the next
    cuda::i32 groupShift = 0;                      // 2^shift groups of 8 channels for a block
};

} // namespace tw::ops::reformat
