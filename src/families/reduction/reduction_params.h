// SPDX-License-Identifier: Apache-2.0
// What hosts hand to kernels whose sets are rows or columns.
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::reduction {

// x as [outer, n, inner], sets along n: packs of neighbouring columns, those of all outer matrices in a row.
struct Columns
{
    cuda::u64 packs = 0, n = 0;
    cuda::Div packsOfRow;

#ifndef __CUDACC_RTC__
    void set(int64_t outer, int64_t length, int64_t inner, int64_t width)
    {
        packs = uint64_t(outer * (inner / width));
        n = uint64_t(length);
        packsOfRow = cuda::divBy(inner / width);
    }
#endif
};

} // namespace tw::ops::reduction
