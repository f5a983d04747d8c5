// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::product_norm {

// Rows of y in place.
struct Params
{
    void const *gamma = nullptr, *beta = nullptr;
    void* y = nullptr;
    cuda::u64 rows = 0, n = 0;
    float epsilon = 0;
};

} // namespace tw::ops::product_norm
