// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "families/copy/copy_params.h"
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

// y[r, i] = x[r, j[i]], rows of `length` and `count` elements.
struct RingParams
{
    void const *x = nullptr, *j = nullptr;
    void* y = nullptr;
    cuda::i64 rows = 0, length = 0, count = 0;
    cuda::i32 chunks = 1, step = 1; // of columns; blocks of a chunk
};

// y[r, i] = x[r, j[i]], rows of `length` and `count` elements.
struct StagedParams
{
    void const *x = nullptr, *j = nullptr;
    void* y = nullptr;
    cuda::i64 length = 0, count = 0;
};

} // namespace tw::ops::gather
