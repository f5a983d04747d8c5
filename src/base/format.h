// SPDX-License-Identifier: Apache-2.0
// Formats: how the elements of a tensor lie in memory.
#pragma once

#include <cstdint>

#include "base/extents.h"
#include "base/types.h"

namespace tw {

// Numbers below 100 are those of nvinfer1::TensorFormat. The channels of those are the third dimension from the end
// (of kDHWC8 and kCDHW32 the fourth). A count that is no multiple of the vector is rounded up; what lies in such gaps
// is nobody's: kernels may read and overwrite it and must not depend on it.
enum class Format : int32_t
{
    kLinear = 0, // row-major, no gaps
    kCHW2 = 1,   // planes of vectors of 2 channels: [..., c / 2, h, w, 2]
    kHWC8 = 2,   // pixel by pixel, the channels of one pixel together, rounded up to 8: [..., h, w, c]
    kCHW4 = 3,   // as kCHW2, of 4
    kCHW16 = 4,  // of 16
    kCHW32 = 5,  // of 32
    kDHWC8 = 6,  // as kHWC8: [..., d, h, w, c]
    kCDHW32 = 7, // as kCHW32: [..., c / 32, d, h, w, 32]
    kHWC = 8,    // as kHWC8, not rounded up
    kHWC16 = 11, // as kHWC8, rounded up to 16
    // Pixel by pixel, the channels of one pixel together: [n, spatial..., c] for dims [n, c, spatial...] (rank 3 and
    // up). From pixel to pixel whole cache lines, so that vectors are aligned and tails need no masks; and one line
    // more where pixels would otherwise lie a multiple of 1 KiB apart, since those compete for few sets of the cache.
    kChannelsLast = 100,
};

inline constexpr Format kFormats[] = {Format::kLinear, Format::kCHW2,  Format::kHWC8,        Format::kCHW4,
                                      Format::kCHW16,  Format::kCHW32, Format::kDHWC8,       Format::kCDHW32,
                                      Format::kHWC,    Format::kHWC16, Format::kChannelsLast};

constexpr bool isKnown(Format f)
{
    for (Format known : kFormats)
        if (f == known)
            return true;
    return false;
}

constexpr char const* nameOf(Format f)
{
    switch (f) {
    case Format::kLinear:
        return "linear";
    case Format::kCHW2:
        return "chw2";
    case Format::kHWC8:
        return "hwc8";
    case Format::kCHW4:
        return "chw4";
    case Format::kCHW16:
        return "chw16";
    case Format::kCHW32:
        return "chw32";
    case Format::kDHWC8:
        return "dhwc8";
    case Format::kCDHW32:
        return "cdhw32";
    case Format::kHWC:
        return "hwc";
    case Format::kHWC16:
        return "hwc16";
    case Format::kChannelsLast:
        return "channels_last";
    }
    return "unknown";
}

// Channels that lie together: of kChannelsLast see pixelStrideOf().
constexpr int vectorOf(Format f)
{
    switch (f) {
    case Format::kCHW2:
        return 2;
    case Format::kCHW4:
        return 4;
    case Format::kHWC8:
    case Format::kDHWC8:
        return 8;
    case Format::kCHW16:
    case Format::kHWC16:
        return 16;
    case Format::kCHW32:
    case Format::kCDHW32:
        return 32;
    default:
        return 1;
    }
}

// All channels of a pixel lie together.
constexpr bool isByPixel(Format f)
{
    return f == Format::kHWC8 || f == Format::kDHWC8 || f == Format::kHWC || f == Format::kHWC16 ||
           f == Format::kChannelsLast;
}

// The dimension that the channels are; negative: a tensor of this rank cannot be in the format.
constexpr int channelAxis(Format f, int rank)
{
    if (f == Format::kChannelsLast)
        return rank >= 3 ? 1 : -1;
    return rank - (f == Format::kDHWC8 || f == Format::kCDHW32 ? 4 : 3);
}
constexpr int leastRankOf(Format f)
{
    return f == Format::kLinear ? 0 : f == Format::kDHWC8 || f == Format::kCDHW32 ? 4 : 3;
}
constexpr bool fitsRank(Format f, int rank)
{
    return rank >= leastRankOf(f);
}

inline constexpr int64_t kCacheLine = 64;

// Elements from one pixel to the next where isByPixel().
constexpr int64_t pixelStrideOf(Format f, DataType type, int64_t channels)
{
    if (f != Format::kChannelsLast)
        return (channels + vectorOf(f) - 1) / vectorOf(f) * vectorOf(f);
    int64_t const line = kCacheLine / sizeOf(type);
    int64_t const stride = (channels + line - 1) / line * line;
    return stride * sizeOf(type) % 1024 == 0 && channels > 0 ? stride + line : stride;
}

// Elements of storage, gaps included. Saturates nowhere: callers have checked the dimensions.
inline int64_t storageCount(Format format, DataType type, Extents const& dims)
{
    if (format == Format::kLinear || !fitsRank(format, dims.rank))
        return dims.volume();
    int const axis = channelAxis(format, dims.rank);
    return dims.volume(0, axis) * dims.volume(axis + 1, dims.rank) * pixelStrideOf(format, type, dims[axis]);
}

// Formats by pixels whose channels are whole vectors of one size: those in which kernels of GPUs take
// images.
constexpr bool isPixelVectors(Format f)
{
    return f == Format::kHWC8 || f == Format::kHWC16;
}
// At least 16 bytes together.
constexpr Format pixelVectorsOf(DataType type)
{
    return type == DataType::kInt8 ? Format::kHWC16 : Format::kHWC8;
}

} // namespace tw
