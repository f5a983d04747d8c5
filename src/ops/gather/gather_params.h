// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/copy/cuda_vec16_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops::gather {

// Every mode: the coordinates of y give an offset in j and one in x; `indices` neighbours from j's offset on say the
// rest of x's.
struct GatherParams
{
    void const *x = nullptr, *j = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Loop<2> loop; // over y: x, j
    cuda::i64 size[8] = {}, stride[8] = {};
    cuda::i32 indices = 1, first = 0, each = 1, pad = 0; // first: the first dimension that counts
    ContiguousSpan words;                                // around x
};

} // namespace tw::ops::gather
