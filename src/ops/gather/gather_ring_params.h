// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::gather {

// y[r, i] = x[r, j[i]], rows of `length` and `count` elements.
struct RingParams
{
    void const *x = nullptr, *j = nullptr;
    void* y = nullptr;
    cuda::i64 rows = 0, length = 0, count = 0;
    cuda::i32 chunks = 1, step = 1; // of columns; blocks of a chunk
};

} // namespace tw::ops::gather
