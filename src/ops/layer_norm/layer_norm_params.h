// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/reduction/reduction_params.h"

namespace tw::ops::layer_norm {

struct Tensors
{
    void const *x = nullptr, *gamma = nullptr, *beta = nullptr;
    void *y = nullptr, *integers = nullptr;
    float const* scale = nullptr; // of the integers
};

// Sets that are contiguous: n elements, from one to the next `pitch`. The place in gamma and beta of the element i of x:
// i / tail % count.
struct RowParams : Tensors
{
    cuda::u64 sets = 0, n = 0, xPitch = 0, yPitch = 0;
    cuda::Div tail, count;
    void* parts = nullptr; // float2 of each set and chunk: mean, sum of squared differences from it
    cuda::Div chunks;      // of a set
};

// [outer, n, inner], sets along n.
struct ColumnParams : Tensors, reduction::Columns
{
    cuda::Div tail, count;
};

// [images, n, channels] in pixels of xPitch and yPitch elements.
struct PixelParams : Tensors
{
    cuda::u64 n = 0, xPitch = 0, yPitch = 0;
    cuda::i32 channels = 0, groups = 0, slabs = 0, each = 0; // each: pixels of a slab
    cuda::i32 segments = 0;                                  // of channels, whole groups
    void* parts = nullptr;                                   // float2 [image, group, slab]
};

// Any sets: positions of sets and those within, each with an offset in x and one in gamma and beta.
struct AnyParams : Tensors
{
    cuda::u64 n = 0;
    cuda::Loop<2> sets, within;
};

} // namespace tw::ops::layer_norm
