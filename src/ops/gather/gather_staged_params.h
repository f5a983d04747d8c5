// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::gather {

// y[r, i] = x[r, j[i]], rows of `length` and `count` elements.
struct StagedParams
{
    void const *x = nullptr, *j = nullptr;
    void* y = nullptr;
    cuda::i64 length = 0, count = 0;
};

} // namespace tw::ops::gather
