// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::roi_align {

struct Params
{
    static constexpr int kMaps = 8;
    void const *rois = nullptr, *images = nullptr, *maps[kMaps] = {};
    void* y = nullptr;
    cuda::i32 h[kMaps] = {}, w[kMaps] = {};
    cuda::u64 count = 0;               // of elements of y
    cuda::u32 perImage = 1;            // rois
    cuda::i32 batch = 0, channels = 0; // of maps
    cuda::i32 down = 0;                // taps of rows, which those of columns follow
    cuda::u32 stage = 0;               // where a part of y stands in shared memory, in bytes
    cuda::i32 pixel = 0, yPixel = 0;   // elements from one pixel to the next, in formats by pixels
};

} // namespace tw::ops::roi_align
