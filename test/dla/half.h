// SPDX-License-Identifier: Apache-2.0
// FP16 of numbers that it holds exactly, without the library's own conversions.
#pragma once

#include <cmath>
#include <cstdint>

namespace tw::test {

inline float toFloat(uint16_t h)
{
    int const exponent = h >> 10 & 31, mantissa = h & 1023;
    float const v =
        exponent == 0 ? std::ldexp(float(mantissa), -24) : std::ldexp(float(mantissa + 1024), exponent - 25);
    return (h & 0x8000) != 0 ? -v : v;
}
inline uint16_t toHalf(float v)
{
    if (v == 0)
        return 0;
    int exponent = 0;
    float const m = std::frexp(std::fabs(v), &exponent); // 0.5 .. 1
    return uint16_t((v < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | (int(std::ldexp(m, 11)) & 1023));
}

} // namespace tw::test
