// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::cumulative_sum {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 lines = 0, length = 0;
    cuda::Div inner; // elements from one of a line to the next
};

} // namespace tw::ops::cumulative_sum
