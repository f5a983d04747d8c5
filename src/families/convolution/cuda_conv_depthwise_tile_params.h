// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops::conv_f16 {

struct TileParams
{
    void const *x = nullptr, *filters = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    cuda::Div slices, tilesW, tilesH; // of channels, of y
    cuda::u32 tiles = 0, step = 0;    // of one slice; blocks that share them
    cuda::i64 pixelX = 0, pixelY = 0, pixelResidual = 0;
    cuda::i32 vectors = 0, h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0, pad = 0;
};

struct RowParams
{
    void const *x = nullptr, *filters = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;           // threads with work
    cuda::Div vectors, wide, tall; // V channels, COLUMNS outputs of a row, rows
    cuda::i64 pixelX = 0, pixelY = 0, pixelResidual = 0;
    cuda::i32 h = 0, w = 0, outW = 0, padH = 0, padW = 0, strideH = 1, dilationH = 1, pad = 0;
};

struct StripParams
{
    void const *x = nullptr, *filters = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;          // threads, idle ones too
    cuda::Div wide, slices, tall; // COLUMNS outputs, SLICE vectors, ROWS outputs
    cuda::i64 pixelX = 0, pixelY = 0, pixelResidual = 0;
    cuda::i32 vectors = 0, h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0, pad = 0;
};

} // namespace tw::ops::conv_f16

namespace tw::ops::conv_i8 {

struct DepthwiseParams
{
    cuda::i8 const* x = nullptr;
    // [R, groups of 4 taps, channels rounded up to 16]: where the taps of a row are so many as
    //   3 or 4: the bytes are taps
    //   2:      two bytes, first those of even channels, then of odd ones, the others 0
    //   1:      byte channel % 4, the others 0
    // as the kernel finds the bytes of x.
    cuda::u32 const* filters = nullptr;
    void* y = nullptr;
    cuda::IntegerEndArgs end;
    cuda::i64 pixelX = 0, pixelY = 0, pixelResidual = 0; // elements
    cuda::u64 count = 0;                                 // threads
    cuda::Div vectors, wide, tall;                       // of V channels, of COLUMNS outputs; rows of y
    cuda::i32 channels = 0, h = 0, w = 0, outW = 0, padH = 0, padW = 0, strideH = 1, dilationH = 1;
};

} // namespace tw::ops::conv_i8
