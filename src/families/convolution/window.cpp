// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/window.h"

#include <algorithm>

namespace tw::ops {

using ir::Dim;

Dim windowOutput(WindowKind kind, PaddingMode mode, Dim const& in, WindowParams const& p)
{
    Dim const extent = p.extent(), stride = p.stride;
    bool const same = mode == PaddingMode::kSameUpper || mode == PaddingMode::kSameLower;
    bool const caffe = mode == PaddingMode::kCaffeRoundDown || mode == PaddingMode::kCaffeRoundUp;
    if (kind == WindowKind::kDeconvolution) {
        Dim const full = (in - 1) * stride + extent;
        return same ? min(in * stride, full) : full - (p.before + p.after);
    }
    if (same)
        return ceilDiv(in, stride);
    Dim const padded = caffe ? in + 2 * p.before : in + (p.before + p.after);
    bool const up = mode == PaddingMode::kExplicitRoundUp || mode == PaddingMode::kCaffeRoundUp;
    Dim const out = (up ? ceilDiv(padded - extent, stride) : floorDiv(padded - extent, stride)) + 1;
    if (kind == WindowKind::kPooling && caffe) // a window must begin inside the input or its front padding
        return out - (Dim(1) - Dim::make(ir::DimOp::kLess, (out - 1) * stride, in + p.before));
    return out;
}

std::string windowMisfit(WindowKind kind, Dim const& in, Dim const& out, WindowParams const& p)
{
    // What a deconvolution trims may be all that it makes; nothing slides there.
    bool const needsOne = kind != WindowKind::kDeconvolution && in.isConst() && in.value() > 0;
    if (!out.isConst() || out.value() >= (needsOne ? 1 : 0))
        return {};
    std::string const padding = fmt::format("{}, {}", p.before, p.after);
    if (kind == WindowKind::kDeconvolution)
        return fmt::format(
            "the window does not fit: padding {} trims more than the output that input {} and window extent {} make",
            padding, in.str(), p.extent());
    return fmt::format("the window does not fit: its extent {} is larger than input {} with padding {}", p.extent(),
                       in.str(), padding);
}

WindowPadding windowPadding(WindowKind kind, PaddingMode mode, int64_t in, WindowParams const& p)
{
    if (mode == PaddingMode::kSameUpper || mode == PaddingMode::kSameLower) {
        int64_t const total = kind == WindowKind::kDeconvolution
                                  ? std::max<int64_t>(p.extent() - p.stride, 0)
                                  : std::max<int64_t>((in - 1) / p.stride * p.stride + p.extent() - in, 0);
        int64_t const small = total / 2, large = total - small;
        return mode == PaddingMode::kSameUpper ? WindowPadding{small, large} : WindowPadding{large, small};
    }
    return WindowPadding{p.before, p.after};
}

std::string checkWindow(WindowKind kind, PaddingMode mode, WindowParams const& p)
{
    constexpr int64_t kLimit = INT32_MAX;
    if (static_cast<int>(mode) < 0 || static_cast<int>(mode) >= kPaddingModeCount)
        return fmt::format("padding mode {} does not exist", static_cast<int>(mode));
    if (p.size < 1 || p.size > kLimit)
        return fmt::format("window size {} must be at least 1", p.size);
    if (p.stride < 1 || p.stride > kLimit)
        return fmt::format("stride {} must be at least 1", p.stride);
    if (p.dilation < 1 || p.dilation > kLimit)
        return fmt::format("dilation {} must be at least 1", p.dilation);
    if (p.before < 0 || p.after < 0 || p.before > kLimit || p.after > kLimit)
        return fmt::format("padding {}, {} must not be negative", p.before, p.after);
    if (kind == WindowKind::kPooling && mode == PaddingMode::kCaffeRoundDown && p.before >= p.size)
        return fmt::format("padding {} must be smaller than the window {} in mode kCAFFE_ROUND_DOWN", p.before, p.size);
    if (kind == WindowKind::kPooling && mode == PaddingMode::kCaffeRoundUp && p.before >= p.size + 1)
        return fmt::format("padding {} is too large for the window {} in mode kCAFFE_ROUND_UP", p.before, p.size);
    return {};
}

} // namespace tw::ops
