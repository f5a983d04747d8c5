// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::softmax {

struct ShortRowsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 rows = 0;
};

} // namespace tw::ops::softmax
