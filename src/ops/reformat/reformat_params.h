// SPDX-License-Identifier: Apache-2.0
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

} // namespace tw::ops::reformat
