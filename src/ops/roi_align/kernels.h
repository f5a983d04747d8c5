// SPDX-License-Identifier: Apache-2.0
// Bins of channels-last maps in FP32, for each instruction set.
#pragma once

#include <cstdint>

namespace tw::ops::roi_align {

struct Tap
{
    int32_t at;
    float weight, least; // sum, or largest and smallest
};

// All pixels that rows and columns name, pixel (r, c) at x + (r * width + c) * step.
struct PixelBin
{
    float const* x;
    int64_t width, step;
    Tap const *rows, *columns;
    int64_t rowCount, columnCount;
};

struct Kernels
{
    // y[c] = sum of weights times pixels, for channels in whole cache lines (16).
    void (*mix)(PixelBin const& bin, int64_t channels, float* y);
};

} // namespace tw::ops::roi_align

namespace tw::avx2 {
extern ops::roi_align::Kernels const kRoiAlign;
}
namespace tw::avx512 {
extern ops::roi_align::Kernels const kRoiAlign;
}
