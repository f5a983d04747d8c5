// SPDX-License-Identifier: Apache-2.0
// Number types of tensors and conversions between them.
#pragma once

#include <cstdint>
#include <cstring>

namespace tw {

// Same numbers as nvinfer1::DataType.
enum class DataType : int32_t
{
    kFloat = 0,
    kHalf = 1,
    kInt8 = 2,
    kInt32 = 3,
    kBool = 4,
    kUInt8 = 5,
};
inline constexpr int kDataTypeCount = 6;

// Bytes of one element.
constexpr int64_t sizeOf(DataType t)
{
    return t == DataType::kFloat || t == DataType::kInt32 ? 4 : t == DataType::kHalf ? 2 : 1;
}
constexpr bool isFloating(DataType t)
{
    return t == DataType::kFloat || t == DataType::kHalf;
}
// Short name in text form, messages and case names: f32 f16 i8 i32 b u8.
constexpr char const* nameOf(DataType t)
{
    switch (t) {
    case DataType::kFloat:
        return "f32";
    case DataType::kHalf:
        return "f16";
    case DataType::kInt8:
        return "i8";
    case DataType::kInt32:
        return "i32";
    case DataType::kBool:
        return "b";
    case DataType::kUInt8:
        return "u8";
    }
    return "?";
}

// IEEE 754 binary16 bits to float, exact.
inline float halfToFloat(uint16_t h)
{
    uint32_t const sign = uint32_t(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 0x1fu;
    uint32_t mantissa = h & 0x3ffu;
    uint32_t bits = 0;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000u | (mantissa << 13);
    } else if (exponent != 0) {
        bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else if (mantissa != 0) {
        exponent = 113; // subnormal: shift the leading one up to the implicit place
        while ((mantissa & 0x400u) == 0) {
            mantissa <<= 1;
            --exponent;
        }
        bits = sign | (exponent << 23) | ((mantissa & 0x3ffu) << 13);
    } else {
        bits = sign;
    }
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}

// float to IEEE 754 binary16 bits, round to nearest even.
inline uint16_t floatToHalf(float f)
{
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    uint16_t const sign = uint16_t((bits >> 16) & 0x8000u);
    uint32_t const magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return uint16_t(sign | 0x7e00u); // NaN
    if (magnitude >= 0x477ff000u)
        return uint16_t(sign | 0x7c00u); // rounds above 65504: infinity
    if (magnitude < 0x38800000u) {       // subnormal or zero: adding 0.5 aligns the mantissa, the FPU rounds
        float const half = 0.5f;
        float shifted;
        std::memcpy(&shifted, &magnitude, 4);
        shifted += half;
        uint32_t out, base;
        std::memcpy(&out, &shifted, 4);
        std::memcpy(&base, &half, 4);
        return uint16_t(sign | (out - base));
    }
    uint32_t const rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23);
    return uint16_t(sign | (rounded >> 13));
}

} // namespace tw
