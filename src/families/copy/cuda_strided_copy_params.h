// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/copy/cuda_vec16_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops {

struct StridedCopyParams
{
    void const *x = nullptr, *fill = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::i32 first = 0, each = 1; // the first dimension that counts; units of a thread
    cuda::Loop<2> loop;            // x, y
    cuda::i64 low[8] = {}, span[8] = {};
    ContiguousSpan words; // around x
};

} // namespace tw::ops
