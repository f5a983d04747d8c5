// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdlib>

namespace tw {

// Whether x is 2^e or -2^e with |e| at most so large: to divide by it is to multiply by 1 / x.
inline bool isPowerOfTwo(double x, int mostExponent)
{
    int exponent = 0;
    return std::fabs(std::frexp(x, &exponent)) == 0.5 && std::abs(exponent - 1) <= mostExponent;
}

} // namespace tw
