// SPDX-License-Identifier: Apache-2.0
// IEEE 754 binary16 for host code: __half, __half2 and the conversions and operators that clients of TensorRT use.
// Every operation converts to float, computes there and rounds once to nearest even, which for one +, -, * or / gives
// the correctly rounded binary16 result.
#ifndef TW_HOSTCUDA_CUDA_FP16_H
#define TW_HOSTCUDA_CUDA_FP16_H

#include "vector_types.h"

#ifdef __cplusplus

#include <cstdint>
#include <cstring>
#include <type_traits>

// The 16 bits alone, as CUDA spells them.
struct __half_raw
{
    unsigned short x;
};
struct __half2_raw
{
    unsigned short x, y;
};

namespace twHostCudaDetail {
inline float bitsToFloat(std::uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

inline std::uint32_t floatToBits(float value)
{
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

// Rounds to nearest even; beyond 65504 + half a step gives infinity; NaN stays NaN (quiet).
inline unsigned short floatToHalf(float value)
{
    std::uint32_t const bits = floatToBits(value);
    std::uint32_t const sign = (bits >> 16) & 0x8000u;
    std::uint32_t const magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return static_cast<unsigned short>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) // 65520, the midpoint above the largest half
        return static_cast<unsigned short>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { // below 2^-14: the result counts steps of 2^-24
        // Adding 0.5 puts the last bit of the sum at 2^-24, so the float adder does the rounding.
        float const sum = bitsToFloat(magnitude) + 0.5f;
        return static_cast<unsigned short>(sign | (floatToBits(sum) - 0x3f000000u));
    }
    // Normal: move the exponent bias from 127 to 15 and round away 13 bits.
    std::uint32_t const odd = (magnitude >> 13) & 1u;
    return static_cast<unsigned short>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float halfToFloat(unsigned short half)
{
    std::uint32_t const sign = (half & 0x8000u) << 16;
    std::uint32_t const exponent = (half >> 10) & 0x1fu;
    std::uint32_t const fraction = half & 0x3ffu;
    if (exponent == 31)
        return bitsToFloat(sign | 0x7f800000u | (fraction << 13));
    if (exponent == 0) { // zero or subnormal: fraction * 2^-24
        float const value = static_cast<float>(fraction) * 5.9604644775390625e-8f;
        return bitsToFloat(sign | floatToBits(value));
    }
    return bitsToFloat(sign | ((exponent + 112u) << 23) | (fraction << 13));
}
} // namespace twHostCudaDetail

struct alignas(2) __half
{
    __half() = default;
    __half(__half_raw const& raw) : bits_(raw.x) {}
    __half(float value) : bits_(twHostCudaDetail::floatToHalf(value)) {}
    // From double in one rounding: a float cannot hold the tie-breaking tail, so that tail is folded into its last bit.
    __half(double value) : bits_(twHostCudaDetail::floatToHalf(oddFloat(value))) {}
    __half(int value) : __half(static_cast<double>(value)) {}
    __half(unsigned int value) : __half(static_cast<double>(value)) {}
    __half(short value) : __half(static_cast<float>(value)) {}
    __half(unsigned short value) : __half(static_cast<float>(value)) {}
    __half(long value) : __half(static_cast<double>(value)) {}
    __half(unsigned long value) : __half(static_cast<double>(value)) {}
    __half(long long value) : __half(static_cast<double>(value)) {}
    __half(unsigned long long value) : __half(static_cast<double>(value)) {}

    __half& operator=(__half_raw const& raw)
    {
        bits_ = raw.x;
        return *this;
    }

    operator float() const { return twHostCudaDetail::halfToFloat(bits_); }
    operator __half_raw() const { return __half_raw{bits_}; }

private:
    static float oddFloat(double value)
    {
        float nearest = static_cast<float>(value);
        if (static_cast<double>(nearest) == value || value != value)
            return nearest;
        // Truncate toward zero, then set the last bit: round to odd keeps the second rounding exact.
        std::uint32_t bits = twHostCudaDetail::floatToBits(nearest);
        double const size = value < 0 ? -value : value;
        double const nearestSize = nearest < 0 ? -static_cast<double>(nearest) : static_cast<double>(nearest);
        if (nearestSize > size && (bits & 0x7fffffffu) != 0)
            --bits;
        return twHostCudaDetail::bitsToFloat(bits | 1u);
    }

    unsigned short bits_;
};

typedef __half half;
typedef __half __nv_half;
typedef __half_raw __nv_half_raw;

struct alignas(4) __half2
{
    __half2() = default;
    __half2(__half const& a, __half const& b) : x(a), y(b) {}
    __half x, y;
};
typedef __half2 half2;
typedef __half2 __nv_half2;

inline float __half2float(__half const& h)
{
    return static_cast<float>(h);
}
inline __half __float2half(float f)
{
    return __half(f);
}
inline __half __float2half_rn(float f)
{
    return __half(f);
}
inline __half __double2half(double d)
{
    return __half(d);
}
inline __half __int2half_rn(int i)
{
    return __half(i);
}
inline unsigned short __half_as_ushort(__half const& h)
{
    return static_cast<__half_raw>(h).x;
}
inline short __half_as_short(__half const& h)
{
    return static_cast<short>(static_cast<__half_raw>(h).x);
}
inline __half __ushort_as_half(unsigned short bits)
{
    return __half(__half_raw{bits});
}
inline __half __short_as_half(short bits)
{
    return __half(__half_raw{static_cast<unsigned short>(bits)});
}

// These take two __half and nothing that converts to it: h * 2 and h == 0.f are float expressions without ambiguity.
#define TW_HOSTCUDA_IF_HALF(H, R) typename std::enable_if<std::is_same<H, __half>::value, R>::type
#define TW_HOSTCUDA_HALF_ARITHMETIC(op)                                                                                \
    template <class H>                                                                                                 \
    inline TW_HOSTCUDA_IF_HALF(H, __half) operator op(H const& a, H const& b)                                          \
    {                                                                                                                  \
        return __half(static_cast<float>(a) op static_cast<float>(b));                                                 \
    }                                                                                                                  \
    inline __half& operator op##=(__half& a, __half const& b)                                                          \
    {                                                                                                                  \
        return a = a op b;                                                                                             \
    }
TW_HOSTCUDA_HALF_ARITHMETIC(+)
TW_HOSTCUDA_HALF_ARITHMETIC(-)
TW_HOSTCUDA_HALF_ARITHMETIC(*)
TW_HOSTCUDA_HALF_ARITHMETIC(/)
#undef TW_HOSTCUDA_HALF_ARITHMETIC
#undef TW_HOSTCUDA_IF_HALF

inline __half operator+(__half const& a)
{
    return a;
}
inline __half operator-(__half const& a)
{
    return __half(__half_raw{static_cast<unsigned short>(static_cast<__half_raw>(a).x ^ 0x8000u)});
}

inline __half __hadd(__half const& a, __half const& b)
{
    return a + b;
}
inline __half __hsub(__half const& a, __half const& b)
{
    return a - b;
}
inline __half __hmul(__half const& a, __half const& b)
{
    return a * b;
}
inline __half __hdiv(__half const& a, __half const& b)
{
    return a / b;
}
inline __half __hneg(__half const& a)
{
    return -a;
}
inline bool __hlt(__half const& a, __half const& b)
{
    return a < b;
}
inline bool __hgt(__half const& a, __half const& b)
{
    return a > b;
}
inline bool __heq(__half const& a, __half const& b)
{
    return a == b;
}
inline bool __hisnan(__half const& a)
{
    return (static_cast<__half_raw>(a).x & 0x7fffu) > 0x7c00u;
}
inline int __hisinf(__half const& a)
{
    unsigned const bits = static_cast<__half_raw>(a).x;
    return (bits & 0x7fffu) == 0x7c00u ? ((bits & 0x8000u) != 0 ? -1 : 1) : 0;
}
inline __half2 __floats2half2_rn(float a, float b)
{
    return __half2(__half(a), __half(b));
}
inline float __low2float(__half2 const& v)
{
    return static_cast<float>(v.x);
}
inline float __high2float(__half2 const& v)
{
    return static_cast<float>(v.y);
}

#endif // __cplusplus

#endif
