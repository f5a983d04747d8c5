// SPDX-License-Identifier: Apache-2.0
// What kernels get from the host: structs that have the same layout in the generated text (prelude.cpp), where a
// static_assert on the size holds the two together.
#pragma once

#include <cstdint>

#include "base/extents.h"

namespace tw::cuda {

// Division by a number that is known at launch. For n < 2^31: n / d = (n + (n * m >> 32)) >> s, s = ceil(log2 d),
// m = 2^32 (2^s - d) / d + 1. Wide kernels use d itself.
struct Div
{
    uint64_t d = 1;
    uint32_t m = 1, s = 0;
};
Div divBy(int64_t d);

// K operands walked in step over one space of kMaxRank dimensions, the last running fastest; unused leading dimensions
// have size 1. Strides in elements, 0 where an operand is stretched.
template <int K>
struct Loop
{
    Div dim[kMaxRank];
    int64_t stride[K][kMaxRank] = {};

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
};

} // namespace tw::cuda
