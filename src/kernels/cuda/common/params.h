// SPDX-License-Identifier: Apache-2.0
// What kernels get from the host. Structs for both sides stand in files such as this one, which the host includes and
// the build embeds.
#pragma once

#include "kernels/cuda/common/types.h"

#ifndef __CUDACC_RTC__
#include "base/extents.h"
#endif

namespace tw::cuda {

// Division by a number that is known at launch. For n < 2^31: n / d = (n + (n * m >> 32)) >> s, s = ceil(log2 d),
// m = 2^32 (2^s - d) / d + 1. Wide kernels use d itself.
struct Div
{
    u64 d = 1;
    u32 m = 1, s = 0;
};
#ifndef __CUDACC_RTC__
Div divBy(int64_t d);
#endif

// K operands walked in step over one space of 8 dimensions (kMaxRank), the last running fastest; unused leading
// dimensions have size 1. Strides in elements, 0 where an operand is broadcast.
template <int K>
struct Loop
{
    Div dim[8];
    i64 stride[K][8] = {};

#ifndef __CUDACC_RTC__
    void set(Extents const& dims)
    {
        for (int i = 0; i < dims.rank; ++i)
            dim[kMaxRank - dims.rank + i] = divBy(dims[i]);
    }
    void setStrides(int k, Extents const& strides)
    {
        for (int i = 0; i < strides.rank; ++i)
            stride[k][kMaxRank - strides.rank + i] = strides[i];
    }
#endif
};

} // namespace tw::cuda
