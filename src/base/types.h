// SPDX-License-Identifier: Apache-2.0
// Number types of tensors and conversions between them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace tw {

// Same numbers as nvinfer1::DataType; behind those, types of our own, which no client can name.
enum class DataType : int32_t
{
    kFloat = 0,
    kHalf = 1,
    kInt8 = 2,
    kInt32 = 3,
    kBool = 4,
    kUInt8 = 5,
    kBf16 = 6, // the upper half of a float
};
inline constexpr int kDataTypeCount = 7;

// What the elements of a type are.
enum class NumberKind : int
{
    kFloating,
    kQuantized, // integers that stand for real numbers: steps of a scale
    kInteger,
    kLogic,
};

struct NumberType
{
    char const* name;              // in text form, messages, case names and names of tactics
    char const *published, *shown; // nvinfer1::DataType's name for it, and the word for people
    int bits;
    NumberKind kind;
    int mantissaBits;       // that floating types store, behind the leading one
    double lowest, largest; // finite
    double leastNormal;     // of floating types: what is smaller has fewer digits
};
// A row for each type, in the order of DataType; everything that holds for numbers of a type is asked of it.
inline constexpr NumberType kNumberTypes[kDataTypeCount] = {
    {"f32", "Float", "FP32", 32, NumberKind::kFloating, 23, -0x1.fffffep127, 0x1.fffffep127, 0x1p-126},
    {"f16", "Half", "FP16", 16, NumberKind::kFloating, 10, -65504, 65504, 0x1p-14},
    {"i8", "Int8", "Int8", 8, NumberKind::kQuantized, 0, -128, 127, 0},
    {"i32", "Int32", "Int32", 32, NumberKind::kInteger, 0, -0x1p31, 0x1p31 - 1, 0},
    {"b", "Bool", "Bool", 8, NumberKind::kLogic, 0, 0, 1, 0},
    {"u8", "UInt8", "UInt8", 8, NumberKind::kInteger, 0, 0, 255, 0},
    {"bf16", "", "BF16", 16, NumberKind::kFloating, 7, -0x1.fep127, 0x1.fep127, 0x1p-126},
};
// Of bytes, where there is no such type: a number from outside.
constexpr NumberType numberType(DataType t)
{
    return int(t) >= 0 && int(t) < kDataTypeCount ? kNumberTypes[int(t)]
                                                  : NumberType{"?", "", "", 8, NumberKind::kInteger, 0, 0, 0, 0};
}

// Bytes of one element.
constexpr int64_t sizeOf(DataType t)
{
    return numberType(t).bits / 8;
}
// Short name: f32 f16 i8 i32 b u8 bf16.
constexpr char const* nameOf(DataType t)
{
    return numberType(t).name;
}
constexpr bool isFloating(DataType t)
{
    return numberType(t).kind == NumberKind::kFloating;
}
// Floating types are computed in FP32; a narrow one is stored in fewer bits, so that storing rounds.
constexpr bool isNarrowFloat(DataType t)
{
    return isFloating(t) && numberType(t).bits < 32;
}
constexpr bool isFullFloat(DataType t)
{
    return isFloating(t) && numberType(t).bits == 32;
}
constexpr bool isQuantized(DataType t)
{
    return numberType(t).kind == NumberKind::kQuantized;
}
// Whether elements stand for real numbers.
constexpr bool isReal(DataType t)
{
    return isFloating(t) || isQuantized(t);
}

// IEEE 754 binary16 bits to float, exact. Selections, no branches, here and below: loops of them become vectors.
inline float halfToFloat(uint16_t h)
{
    constexpr uint32_t kLeastNormal = 113u << 23, kShift = 112u << 23; // 2^-14, and from one exponent to the other
    uint32_t const magnitude = h & 0x7fffu, aligned = magnitude << 13;
    float const subnormal = std::bit_cast<float>(kLeastNormal + aligned) - std::bit_cast<float>(kLeastNormal);
    uint32_t const normal = aligned + (magnitude < 0x7c00u ? kShift : 2 * kShift); // infinities and NaN: 31 is 255
    uint32_t const bits = magnitude < 0x400u ? std::bit_cast<uint32_t>(subnormal) : normal;
    return std::bit_cast<float>(bits | uint32_t(h & 0x8000u) << 16);
}

// float to IEEE 754 binary16 bits, round to nearest even.
inline uint16_t floatToHalf(float f)
{
    constexpr float kAlign = 0.5f; // added to what is subnormal it brings the mantissa into place, and the FPU rounds
    uint32_t const bits = std::bit_cast<uint32_t>(f), magnitude = bits & 0x7fffffffu;
    uint32_t const subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kAlign) - std::bit_cast<uint32_t>(kAlign);
    uint32_t const normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    uint32_t const finite = magnitude < 0x38800000u ? subnormal : normal;
    uint32_t const beyond = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u; // NaN; what rounds above 65504
    return uint16_t(((bits >> 16) & 0x8000u) | (magnitude >= 0x477ff000u ? beyond : finite));
}

// BF16 bits to float, exact.
inline float bf16ToFloat(uint16_t h)
{
    uint32_t const bits = uint32_t(h) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}

// float to BF16 bits, round to nearest even; NaN stays NaN.
inline uint16_t floatToBf16(float f)
{
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return uint16_t(bits >> 16 | 0x40u);
    return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// TF32: FP32 with 10 bits of mantissa.

// To the nearest, ties away from zero, as GPUs do; infinities and NaN stay.
inline float roundToTf32(float v)
{
    constexpr uint32_t kExponent = 0x7F800000U, kHalf = 1U << 12, kDropped = (1U << 13) - 1;
    uint32_t const bits = std::bit_cast<uint32_t>(v);
    return (bits & kExponent) == kExponent ? v : std::bit_cast<float>((bits + kHalf) & ~kDropped);
}

} // namespace tw
