// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::reduce {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 results = 0, count = 0;
    cuda::Loop<1> kept, reduced; // offsets in x
};

} // namespace tw::ops::reduce
