// SPDX-License-Identifier: Apache-2.0
// The window attributes that Conv, ConvTranspose and the pools share.
#pragma once

#include "importers/common/node.h"

namespace tw::importers {

struct WindowAttrs
{
    std::vector<int64_t> kernel, strides, dilations, before, after;           // one entry for each spatial dimension
    nvinfer1::PaddingMode mode = nvinfer1::PaddingMode::kEXPLICIT_ROUND_DOWN; // kSAME_* for auto_pad

    // Adds a leading spatial dimension of extent 1: one spatial dimension is imported as two.
    void prependUnit();
    int64_t extent(size_t axis) const { return 1 + dilations[axis] * (kernel[axis] - 1); }
};

// Reads kernel_shape, strides, dilations, pads and auto_pad, checks counts and ranges. `kernel`: the window where an
// input gives it (kernel_shape must then agree when present), empty where the attribute is required.
WindowAttrs readWindow(ImportContext& ctx, int spatial, std::vector<int64_t> const& kernel);

// ceil_mode of a pool with explicit padding: sets the mode. `in`: spatial extents, -1 where not known. A window that would
// begin after the input and its front padding is dropped, whatever the operator set: the standard says so since MaxPool 22
// and AveragePool 19, and PyTorch and ONNX Runtime never had such windows. kEXPLICIT_ROUND_UP keeps them: another mode
// drops them or, where this returns true, withoutEmptyWindows() has to.
bool roundUp(ImportContext& ctx, WindowAttrs& window, std::vector<int64_t> const& in);

// y without windows that begin after x and its front padding; both have the window's axes innermost.
ITensor& withoutEmptyWindows(ImportContext& ctx, ITensor& y, ITensor& x, WindowAttrs const& window);

} // namespace tw::importers
