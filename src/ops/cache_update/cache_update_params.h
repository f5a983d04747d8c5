// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::cache_update {

struct Params
{
    void const* x = nullptr; // null: y holds it
    void const* u = nullptr;
    void* y = nullptr;
    cuda::i32 const* index = nullptr; // may be null
    cuda::u64 count = 0;              // units of what is written: of y, or of u where y holds x
    cuda::u64 capacity = 0, rows = 0;
    cuda::u64 rowStride = 0, groupStride = 0, imageStride = 0; // of u, in units
    cuda::i32 const* pages = nullptr;                          // [images, pageCount], of blocks of y
    cuda::u64 pageCount = 0, blocks = 0;
    cuda::Div row, group, image; // units of a row; rows of a group (of y, or of u); groups of an image
};

} // namespace tw::ops::cache_update
