// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/magnitudes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tw::kernels {

namespace {

uint32_t largest(float const* x, int64_t n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; ++i) {
        uint32_t bits;
        std::memcpy(&bits, x + i, sizeof bits);
        most = std::max(most, bits & 0x7fffffffu);
    }
    return most;
}

void count(float const* x, int64_t n, float binsPerUnit, uint32_t* counts)
{
    for (int64_t i = 0; i < n; ++i)
        if (x[i] != 0)
            ++counts[std::min(int32_t(std::fabs(x[i]) * binsPerUnit), kMagnitudeBins - 1)];
}

} // namespace

MagnitudeKernels const kPlainMagnitudes = {largest, count};

} // namespace tw::kernels
