// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::attention {

struct OperandPlace // elements
{
    cuda::i64 offset = 0, batch = 0, head = 0, row = 0;
};
struct Params
{
    void const *q = nullptr, *k = nullptr, *v = nullptr, *mask = nullptr, *keep = nullptr;
    void* y = nullptr;
    float const* step = nullptr;       // of integers
    cuda::i32 const* begins = nullptr; // of sequences, where they lie one behind the other
    cuda::i64 beginCount = 0;
    cuda::i32 const* lengths = nullptr; // of images, where they are not all the columns
    void const* sinks = nullptr;        // of heads, of q's type
    float const* slopes = nullptr;      // of heads
    cuda::i32 const* table = nullptr;   // whose key it is, of images and columns; of `sharing` images
    cuda::i64 sharing = 1;
    cuda::i32 const* pages =
        nullptr; // which of `blocks` blocks holds 16 rows of keys and values, of images; batch strides are those of blocks
    cuda::i64 blocks = 0;
    float const *keyScales = nullptr, *valueScales = nullptr; // of heads of keys, where these are i8
    cuda::i64 rows = 0, window = 0;
    OperandPlace at[6]; // q, k, v, mask, keep, y
    cuda::i64 columns = 0, size = 0, valueSize = 0, headsPerKey = 1;
    cuda::Div chunks, rowCount, headCount; // chunks: of the value's columns
};

} // namespace tw::ops::attention
