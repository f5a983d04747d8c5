// SPDX-License-Identifier: Apache-2.0
// Formats by pixels whose channels are whole vectors of one size (base/format.h): those in which kernels of GPUs take
// images.
#pragma once

#include "base/format.h"

namespace tw {

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
