// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::resize {

struct PlaneParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 elements = 0; // of x
    cuda::i64 planes = 0;
};

} // namespace tw::ops::resize
