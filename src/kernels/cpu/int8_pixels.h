// SPDX-License-Identifier: Apache-2.0
// Vector kernels on channels-last i8 tensors. Channel counts are rounded up to whole cache lines (64): what lies after
// the last channel is read and written along, as the format allows. One table for each instruction set.
#pragma once

#include <cstdint>

#include "kernels/cpu/channels_last.h"

namespace tw::kernels {

// In a window of an average: sums of so many are exact in f32, and quotients round as exact ones do.
inline constexpr int64_t kMostInt8Averaged = (int64_t(1) << 17) - 1;

struct Int8PixelKernels
{
    // Averages are exact sums by the count, one FP32 division, half to even.
    void (*poolRow)(PoolRowOf<int8_t> const& row);
    // From planes [channels][pixels], channelStep apart, to pixels, and back. Real channels alone are read and written.
    void (*toNhwc)(int8_t const* x, int64_t channelStep, int8_t* y, int64_t step, int64_t channels, int64_t pixels);
    void (*fromNhwc)(int8_t const* x, int64_t step, int8_t* y, int64_t channelStep, int64_t channels, int64_t pixels);
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::Int8PixelKernels const kInt8Pixels;
}
namespace tw::avx512 {
extern kernels::Int8PixelKernels const kInt8Pixels;
}
