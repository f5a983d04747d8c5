// SPDX-License-Identifier: Apache-2.0
// The window attributes that Conv, ConvTranspose and the pools share.
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

struct WindowAttrs
{
    std::vector<int64_t> kernel, strides, dilations, before, after;           // one entry for each spatial dimension
    nvinfer1::PaddingMode mode = nvinfer1::PaddingMode::kEXPLICIT_ROUND_DOWN; // kSAME_* for auto_pad

    // Adds a leading spatial dimension of extent 1: one spatial dimension is imported as two.
    void prependUnit();
};

// Reads kernel_shape, strides, dilations, pads and auto_pad, checks counts and ranges. `kernel`: the window where an
// input gives it (kernel_shape must then agree when present), empty where the attribute is required.
WindowAttrs readWindow(ImportContext& ctx, int spatial, std::vector<int64_t> const& kernel);

} // namespace tw::onnx
