// SPDX-License-Identifier: Apache-2.0
// Single elements in plain kernels: what is narrower than FP32 is its bits and is computed as float. Not for ISA files.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/types.h"

namespace tw {

struct Bfloat16
{
    uint16_t bits;
};

inline float loadElement(float v)
{
    return v;
}
inline float loadElement(uint16_t half)
{
    return halfToFloat(half);
}
inline float loadElement(Bfloat16 v)
{
    return bf16ToFloat(v.bits);
}
inline float loadElement(int8_t v)
{
    return v;
}

inline void storeElement(float& to, float v)
{
    to = v;
}
inline void storeElement(float& to, double v)
{
    to = static_cast<float>(v);
}
inline void storeElement(uint16_t& half, float v)
{
    half = floatToHalf(v);
}
inline void storeElement(uint16_t& half, double v)
{
    half = floatToHalf(static_cast<float>(v));
}
inline void storeElement(Bfloat16& to, float v)
{
    to.bits = floatToBf16(v);
}
inline void storeElement(Bfloat16& to, double v)
{
    to.bits = floatToBf16(static_cast<float>(v));
}
// Half to even, then into [-128, 127]; NaN gives 0.
inline void storeElement(int8_t& to, double v)
{
    to = v != v ? int8_t(0) : static_cast<int8_t>(std::clamp(std::nearbyint(v), -128.0, 127.0));
}

// Calls f(T()), T the C++ type of elements as above; of narrow floating types.
template <class F>
auto withNarrow(DataType t, F const& f)
{
    return t == DataType::kBf16 ? f(Bfloat16()) : f(uint16_t());
}
// Of those and FP32.
template <class F>
auto withFloat(DataType t, F const& f)
{
    return isFullFloat(t) ? f(float()) : withNarrow(t, f);
}
// Of those and quantized ones.
template <class F>
auto withReal(DataType t, F const& f)
{
    return isQuantized(t) ? f(int8_t()) : withFloat(t, f);
}
// Of those and i32.
template <class F>
auto withNumber(DataType t, F const& f)
{
    return isReal(t) ? withReal(t, f) : f(int32_t());
}

} // namespace tw
