// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::pooling {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div out[3];
    cuda::i64 in[3] = {}, window[3] = {}, stride[3] = {}, before[3] = {}, after[3] = {};
};

struct BandsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 countX = 0;
    cuda::Div bands; // of a plane
    cuda::i32 planes = 0, h = 0, outH = 0, padH = 0, afterH = 0, afterW = 0;
};

struct PixelsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;             // threads with work
    cuda::Div vectors, wide, groups; // 16 bytes of channels, columns, ROWS rows
    cuda::Div slices;                // of channels
    cuda::i64 pixelX = 0, pixelY = 0;
    cuda::i32 h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0, afterH = 0, afterW = 0;
};

struct PlanesParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0; // threads with work
    cuda::Div wide, groups;
    cuda::i32 h = 0, w = 0, outH = 0, outW = 0, padH = 0, afterH = 0, afterW = 0, pad = 0;
};

} // namespace tw::ops::pooling
