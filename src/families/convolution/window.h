// SPDX-License-Identifier: Apache-2.0
// Sliding windows of convolution, deconvolution and pooling: output sizes and padding for the six padding modes.
// I input, O output, F window, S stride, D dilation, K = 1 + D (F - 1) its extent, B and A padding before and after.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "ir/dim.h"

namespace tw::ops {

enum class PaddingMode : int32_t // same numbers as nvinfer1::PaddingMode
{
    kExplicitRoundDown = 0,
    kExplicitRoundUp = 1,
    kSameUpper = 2,
    kSameLower = 3,
    kCaffeRoundDown = 4,
    kCaffeRoundUp = 5,
};
inline constexpr int kPaddingModeCount = 6;

enum class WindowKind
{
    kConvolution,
    kPooling,
    kDeconvolution,
};

struct WindowParams // along one axis
{
    int64_t size = 1, stride = 1, dilation = 1, before = 0, after = 0;
    int64_t extent() const { return 1 + dilation * (size - 1); }
};

// O as an expression of I. Numbers in, number out.
ir::Dim windowOutput(WindowKind kind, PaddingMode mode, ir::Dim const& in, WindowParams const& p);

// Text of what is wrong when the window does not fit: a known input with elements gives no output, or any input a
// negative one. Empty when it fits, or when only a run tells.
std::string windowMisfit(WindowKind kind, ir::Dim const& in, ir::Dim const& out, WindowParams const& p);

struct WindowPadding
{
    int64_t before = 0, after = 0;
};
// The padding that the mode really uses for this input size (SAME modes derive it; for deconvolution it is what is
// trimmed).
WindowPadding windowPadding(WindowKind kind, PaddingMode mode, int64_t in, WindowParams const& p);

// Text of what is wrong with the parameters along an axis; empty when nothing is.
std::string checkWindow(WindowKind kind, PaddingMode mode, WindowParams const& p);

} // namespace tw::ops
