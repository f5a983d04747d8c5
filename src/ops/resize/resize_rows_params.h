// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/resize/resize_scale_params.h"

namespace tw::ops::resize {

struct RowParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div inner, groups, vectors;                     // threads of a row, groups of rows, 16 bytes of a pixel
    cuda::i64 xImage = 0, yImage = 0, xRow = 0, yRow = 0; // elements
    cuda::i64 xPixel = 0, yPixel = 0;                     // by pixels
    Scale scale[2];                                       // rows, columns
};

} // namespace tw::ops::resize
