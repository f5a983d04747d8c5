// SPDX-License-Identifier: Apache-2.0
// Pixels of channels-last tensors on CPUs, one name for each type: f32 in vectors, up to whole cache lines; i8 real
// channels alone. Steps from pixel to pixel in elements.
#pragma once

#include <cstring>

#include "kernels/cpu/int8_pixels.h"
#include "tactic/vector_tactic.h"

namespace tw::ops {

using kernels::ChannelsLastKernels;

// The first pixel of image n.
template <class T>
T* pixelsAt(TensorRef const& t, int64_t n)
{
    return t.as<T>() + n * pixelsOf(t) * t.pixelStride();
}

inline void copyPixels(ChannelsLastKernels const& k, float const* x, int64_t xStep, float* y, int64_t yStep,
                       int64_t channels, int64_t pixels)
{
    k.copy(x, xStep, y, yStep, channels, pixels);
}
inline void copyPixels(ChannelsLastKernels const&, int8_t const* x, int64_t xStep, int8_t* y, int64_t yStep,
                       int64_t channels, int64_t pixels)
{
    for (int64_t p = 0; p < pixels; ++p)
        std::memcpy(y + p * yStep, x + p * xStep, size_t(channels));
}

inline void clearPixels(ChannelsLastKernels const& k, float* y, int64_t yStep, int64_t channels, int64_t pixels)
{
    k.fill(0, y, yStep, channels, pixels);
}
inline void clearPixels(ChannelsLastKernels const&, int8_t* y, int64_t yStep, int64_t channels, int64_t pixels)
{
    for (int64_t p = 0; p < pixels; ++p)
        std::memset(y + p * yStep, 0, size_t(channels));
}

// The kernels that turn planes into pixels and back.
inline ChannelsLastKernels const& turningKernels(ChannelsLastKernels const& k, float const*)
{
    return k;
}
inline kernels::Int8PixelKernels const& turningKernels(ChannelsLastKernels const&, int8_t const*)
{
    return avx2::kInt8Pixels;
}

} // namespace tw::ops
