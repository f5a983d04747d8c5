// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::resize {

struct LaneParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 elements = 0; // of x
    cuda::i64 rows = 0;     // of y, in all planes
};

} // namespace tw::ops::resize
