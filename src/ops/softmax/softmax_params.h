// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::softmax {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 slices = 0, n = 0;
    cuda::Div inner;
};

} // namespace tw::ops::softmax
