// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::attention_guard {

struct Params
{
    void const* y = nullptr;
    void const* v = nullptr; // null: of integers, which are all finite
    void* z = nullptr;
    cuda::i32 const* lengths = nullptr; // may be null
    cuda::i32 const* pages = nullptr;   // [images, pageCount]; may be null
    cuda::u64 count = 0;                // elements of y
    cuda::i64 columns = 0, pageCount = 0, blocks = 0;
    cuda::i64 offset = 0, batchStride = 0, headStride = 0, rowStride = 0; // of v
    cuda::Div width, size, perKey; // of a row of y; of a head; heads of y for each of v
    cuda::Div images;              // where rows stand in front of them, and rows of an image where not
};

} // namespace tw::ops::attention_guard
