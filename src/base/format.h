// SPDX-License-Identifier: Apache-2.0
// Formats: how the elements of a tensor lie in memory.
#pragma once

#include <cstdint>
#include <iterator>

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

struct FormatTraits
{
    char const* name = nullptr; // null: there is no such format
    int vector = 1;             // channels that lie together: of kChannelsLast see pixelStrideOf()
    bool isByPixel = false;     // all channels of a pixel lie together
    int leastRank = 3;          // the channels' dimension from the end, but for kLinear and kChannelsLast
};
// By the numbers of formats, kChannelsLast last.
inline constexpr FormatTraits kFormatTraits[] = {{"linear", 1, false, 0},
                                                 {"chw2", 2, false, 3},
                                                 {"hwc8", 8, true, 3},
                                                 {"chw4", 4, false, 3},
                                                 {"chw16", 16, false, 3},
                                                 {"chw32", 32, false, 3},
                                                 {"dhwc8", 8, true, 4},
                                                 {"cdhw32", 32, false, 4},
                                                 {"hwc", 1, true, 3},
                                                 {},
                                                 {},
                                                 {"hwc16", 16, true, 3},
                                                 {"channels_last", 1, true, 3}};
constexpr FormatTraits traitsOf(Format f)
{
    constexpr int kLast = int(std::size(kFormatTraits)) - 1;
    return f == Format::kChannelsLast      ? kFormatTraits[kLast]
           : int(f) >= 0 && int(f) < kLast ? kFormatTraits[int(f)]
                                           : FormatTraits();
}

constexpr bool isKnown(Format f)
{
    return traitsOf(f).name != nullptr;
}
constexpr char const* nameOf(Format f)
{
    return isKnown(f) ? traitsOf(f).name : "unknown";
}
constexpr int vectorOf(Format f)
{
    return traitsOf(f).vector;
}
constexpr bool isByPixel(Format f)
{
    return traitsOf(f).isByPixel;
}

// The dimension that the channels are; negative: a tensor of this rank cannot be in the format.
constexpr int channelAxis(Format f, int rank)
{
    if (f == Format::kChannelsLast)
        return rank >= 3 ? 1 : -1;
    return rank - (f == Format::kLinear ? 3 : traitsOf(f).leastRank);
}
constexpr int leastRankOf(Format f)
{
    return traitsOf(f).leastRank;
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
    return f == Format::kHWC8 || f == Format::kHWC16 || f == Format::kDHWC8;
}
// Whether a tensor of this rank lies so with nothing but the batch before its channels, so that parts of these may be
// tensors of their own.
constexpr bool isPixelRows(Format f, int rank)
{
    return isPixelVectors(f) && channelAxis(f, rank) == 1;
}
// At least 16 bytes together.
constexpr Format pixelVectorsOf(DataType type)
{
    return type == DataType::kInt8 ? Format::kHWC16 : Format::kHWC8;
}

} // namespace tw
