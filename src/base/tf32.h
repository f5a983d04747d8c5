// SPDX-License-Identifier: Apache-2.0
// TF32: FP32 with 10 bits of mantissa.
#pragma once

#include <bit>
#include <cstdint>

namespace tw {

// To the nearest, ties away from zero, as GPUs do; infinities and NaN stay.
inline float roundToTf32(float v)
{
    constexpr uint32_t kExponent = 0x7F800000U, kHalf = 1U << 12, kDropped = (1U << 13) - 1;
    uint32_t const bits = std::bit_cast<uint32_t>(v);
    return (bits & kExponent) == kExponent ? v : std::bit_cast<float>((bits + kHalf) & ~kDropped);
}

} // namespace tw
