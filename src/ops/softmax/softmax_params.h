// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::softmax {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 slices = 0, n = 0;
    cuda::Div inner;
};

struct ColumnsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 packs = 0, n = 0; // of columns, those of all outer matrices in a row; of the axis
    cuda::Div packsOfRow;
};

struct ShortRowsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 rows = 0;
};

} // namespace tw::ops::softmax
