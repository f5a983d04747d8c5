// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace tw {

// The smallest multiple of `step` that is no less than n (n >= 0, step > 0).
constexpr int64_t roundUp(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

// n / by, rounded up (n >= 0, by > 0).
constexpr int64_t divideUp(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

// Whether x is 2^e or -2^e with |e| at most so large: to divide by it is to multiply by 1 / x.
inline bool isPowerOfTwo(double x, int mostExponent)
{
    int exponent = 0;
    return std::fabs(std::frexp(x, &exponent)) == 0.5 && std::abs(exponent - 1) <= mostExponent;
}

} // namespace tw
