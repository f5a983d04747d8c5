// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::grid_sample {

struct Params
{
    void const *x = nullptr, *grid = nullptr;
    void* y = nullptr;
    cuda::u64 all = 0;                // points of all images
    cuda::Div points;                 // of one image
    cuda::u32 channels = 0, each = 0; // of x; those that a thread takes
    cuda::i32 h = 0, w = 0;
};

} // namespace tw::ops::grid_sample
