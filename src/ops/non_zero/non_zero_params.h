// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::non_zero {

struct Params
{
    void const* x = nullptr;
    void *y = nullptr, *found = nullptr; // found: how many there are, u64
    cuda::u64 count = 0, n = 0;          // n: columns of y, 0 while they are counted
    cuda::Div dim[8];                    // of x, the last running fastest
    cuda::i32 rank = 0, pad = 0;
};

} // namespace tw::ops::non_zero
