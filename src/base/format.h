// SPDX-License-Identifier: Apache-2.0
// Formats: how the elements of a tensor lie in memory.
#pragma once

#include <cstdint>

#include "base/extents.h"
#include "base/types.h"

namespace tw {

// Numbers below 100 are those of nvinfer1::TensorFormat.
enum class Format : int32_t
{
    kLinear = 0, // row-major, no gaps
    // Pixel by pixel, the channels of one pixel together: [n, spatial..., c] for dims [n, c, spatial...] (rank 3 and
    // up). From pixel to pixel pixelStrideOf() elements. What lies behind the last channel of a pixel, up to the next
    // whole cache line, is nobody's: kernels may read and overwrite it and must not depend on it.
    kChannelsLast = 100,
};

constexpr char const* nameOf(Format f)
{
    return f == Format::kChannelsLast ? "channels_last" : "linear";
}
constexpr bool isKnown(Format f)
{
    return f == Format::kLinear || f == Format::kChannelsLast;
}

inline constexpr int64_t kCacheLine = 64;

// Elements from one pixel to the next: whole cache lines, so that vectors are aligned and tails need no masks; and one
// line more where pixels would otherwise lie a multiple of 1 KiB apart, since those compete for few sets of the cache.
constexpr int64_t pixelStrideOf(DataType type, int64_t channels)
{
    int64_t const line = kCacheLine / sizeOf(type);
    int64_t const stride = (channels + line - 1) / line * line;
    return stride * sizeOf(type) % 1024 == 0 && channels > 0 ? stride + line : stride;
}

// Elements of storage, gaps included. Saturates nowhere: callers have checked the dimensions.
inline int64_t storageCount(Format format, DataType type, Extents const& dims)
{
    if (format == Format::kLinear || dims.rank < 3)
        return dims.volume();
    return dims[0] * dims.volume(2, dims.rank) * pixelStrideOf(type, dims[1]);
}

} // namespace tw
