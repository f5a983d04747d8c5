// SPDX-License-Identifier: Apache-2.0
// One update reduced into a number.
//   type Element: of x, u and y; Number: float or int; int kReduction: 1 add, 2 multiply, 3 smallest, 4 largest
#pragma once

#include "ops/scatter/slots.cuh"

namespace tw::ops::scatter {

TW_INLINE Number reduced(Number a, Number b)
{
    if constexpr (kReduction == 1)
        return kIsInteger ? Number(u32(a) + u32(b)) : a + b;
    else if constexpr (kReduction == 2)
        return kIsInteger ? Number(u32(a) * u32(b)) : a * b;
    else if (a != a || b != b)
        return a + b;
    else if constexpr (kReduction == 3)
        return b < a ? b : a;
    else
        return b > a ? b : a;
}

} // namespace tw::ops::scatter
