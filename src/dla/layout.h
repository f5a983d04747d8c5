// SPDX-License-Identifier: Apache-2.0
// The formats that only DLA has, as plain memory: tensors in them are network inputs and outputs of a plan whose graph
// works on that memory, row-major without gaps, and takes what is not padding out of it.
#pragma once

#include "base/extents.h"
#include "base/round.h"
#include "base/types.h"
#include "dla/model.h"

namespace tw::dla {

enum class Layout : int32_t // numbers of nvinfer1::TensorFormat
{
    kNone = 0, // a format that the graph's value says
    kLinear = 9,
    kHwc4 = 10,
};
constexpr bool isLayout(int32_t number)
{
    return number == 0 || number == int32_t(Layout::kLinear) || number == int32_t(Layout::kHwc4);
}

inline constexpr int64_t kLinearRowBytes = 64;

// Channels that lie together in kHwc4; 0: it takes no tensor with so many.
constexpr int64_t channelsTogether(int64_t channels)
{
    return channels == 1 ? 1 : channels == 3 || channels == 4 ? 4 : 0;
}

// Dimensions of the memory of a tensor of dims [..., c, h, w]:
//   kLinear [..., c, h, w'], kHwc4 [..., h, w', c'] with w' rounded up to whole rows. Rank 0: it cannot be in the layout.
inline Extents memoryDims(Layout layout, Model model, DataType type, Extents const& dims)
{
    int const rank = dims.rank;
    int64_t const bytes = sizeOf(type);
    if (rank < 3 || rank > kMaxRank || bytes > 2 || (layout == Layout::kHwc4 && channelsTogether(dims[rank - 3]) == 0))
        return {};
    Extents out = dims;
    if (layout == Layout::kLinear) {
        out[rank - 1] = roundUp(dims[rank - 1], kLinearRowBytes / bytes);
    } else {
        int64_t const together = channelsTogether(dims[rank - 3]);
        out[rank - 3] = dims[rank - 2];
        out[rank - 2] = roundUp(dims[rank - 1], imageRowBytesOf(model) / together / bytes);
        out[rank - 1] = together;
    }
    return out;
}

// In elements, from one index of each dimension of the tensor to the next.
inline Extents stridesOf(Layout layout, Extents const& memory)
{
    Extents const strides = tw::stridesOf(memory);
    if (layout != Layout::kHwc4)
        return strides;
    int const rank = memory.rank;
    Extents image = strides;
    image[rank - 3] = strides[rank - 1]; // channels
    image[rank - 2] = strides[rank - 3]; // rows
    image[rank - 1] = strides[rank - 2]; // pixels
    return image;
}

} // namespace tw::dla
