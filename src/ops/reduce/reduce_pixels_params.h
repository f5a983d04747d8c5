// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::reduce {

// The kernels know what x and y are of; to the host it is void.
template <class Number>
struct PixelsParams
{
    Number const* x = nullptr;
    Number* y = nullptr;
    float* parts = nullptr; // [image, split, channels] where blocks share an image
    cuda::i64 pixel = 0;    // elements from pixel to pixel
    cuda::i32 pixels = 0, channels = 0, chunks = 0, split = 0;
};

} // namespace tw::ops::reduce
