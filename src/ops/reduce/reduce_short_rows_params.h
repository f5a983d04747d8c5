// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::reduce {

struct ShortRowsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 results = 0, count = 0;
};

} // namespace tw::ops::reduce
