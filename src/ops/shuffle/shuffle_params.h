// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::shuffle {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Loop<1> second, first; // over y, with strides of the reshaped tensor; over that, with strides of x
};

} // namespace tw::ops::shuffle
