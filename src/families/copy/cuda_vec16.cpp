// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/copy/cuda_strided_copy.h"

namespace tw::ops {

ContiguousSpan contiguousSpan(void const* x, int64_t low, int64_t high, int64_t unitBytes)
{
    uintptr_t const address = reinterpret_cast<uintptr_t>(x);
    int64_t const pack = kVec16Bytes / unitBytes;
    ContiguousSpan s;
    s.x = reinterpret_cast<void const*>(address / kVec16Bytes * kVec16Bytes);
    s.at = int64_t(address % kVec16Bytes) / unitBytes;
    s.begin = s.at + low;
    s.span = std::max<int64_t>(high - low - 2 * pack + 1, 0);
    return s;
}

} // namespace tw::ops
