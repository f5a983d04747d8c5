// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::assertion {

struct Params
{
    void const* x = nullptr;
    void* first = nullptr; // u64: the first element that is false, `count` where there is none
    cuda::u64 count = 0;
};

} // namespace tw::ops::assertion
