// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::resize {

struct StripParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 strips = 0;             // of a band of rows, in all images
    cuda::i64 pixelX = 0, pixelY = 0; // bytes; more than the channels take where a tensor is a part of another
};

} // namespace tw::ops::resize
