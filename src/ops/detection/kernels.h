// SPDX-License-Identifier: Apache-2.0
// The pass over scores, one function for each instruction set and type.
#pragma once

#include <cstdint>

namespace tw::ops::detection {

// Writes the indices of x[begin..n) with x >= least (x > least), never NaN, in order, up to `room` (64 at least); *end: the
// first one that was not looked at, n when all were. Returns how many.
using Collect = int64_t (*)(void const* x, int64_t begin, int64_t n, bool above, float least, int32_t* to, int64_t room,
                            int64_t* end);

} // namespace tw::ops::detection

namespace tw::avx2 {
extern ops::detection::Collect const kCollectFloat, kCollectHalf;
}
namespace tw::avx512 {
extern ops::detection::Collect const kCollectFloat, kCollectHalf;
}
