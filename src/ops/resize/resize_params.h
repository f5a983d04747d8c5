// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::resize {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div dim[8]; // of y, the last running fastest
    cuda::i64 in[8] = {}, stride[8] = {};
    cuda::i64 over[8] = {}, under[8] = {}; // the scale as a fraction
};

struct LaneParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 elements = 0; // of x
    cuda::i64 rows = 0;     // of y, in all planes
};

struct PlaneParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 elements = 0; // of x
    cuda::i64 planes = 0;
};

// Element o of y stands at (times * o + plus) / by in x, rounded down: exact. `by` is added to keep it from going below
// zero, and 1 taken from the quotient.
struct Scale
{
    cuda::Div by, step; // step: times, 1 where that is 0
    cuda::i64 times = 0, plus = 0, in = 1, out = 1;
    float inverse = 1; // of `by`
    cuda::i32 pad = 0;
};

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

struct StripParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 strips = 0;             // of a band of rows, in all images
    cuda::i64 pixelX = 0, pixelY = 0; // bytes; more than the channels take where a tensor is a part of another
};

} // namespace tw::ops::resize
