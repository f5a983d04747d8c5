// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::reduce {

struct RowsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    void* parts = nullptr; // [results, shares], of accumulators
    cuda::u64 results = 0, count = 0;
    cuda::Div shares;
};

} // namespace tw::ops::reduce
