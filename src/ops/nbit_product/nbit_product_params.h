// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::nbit_product {

struct Params
{
    void const* x = nullptr;
    cuda::u32 const* w = nullptr;
    void const* scales = nullptr;
    void const* zeros = nullptr;       // may be null
    void const* bias = nullptr;        // may be null
    cuda::i32 const* groups = nullptr; // may be null
    void* y = nullptr;
    cuda::u64 rows = 0, n = 0, k = 0;
    cuda::u64 blocks = 0, words = 0, block = 0; // of a row of w; of a block
};

} // namespace tw::ops::nbit_product
