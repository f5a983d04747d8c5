// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::shape {

struct Params
{
    void* y = nullptr;
    cuda::i32 dims[8] = {};
};

} // namespace tw::ops::shape
