// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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

} // namespace tw
