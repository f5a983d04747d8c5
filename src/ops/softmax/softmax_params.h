// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "families/reduction/reduction_params.h"

namespace tw::ops::softmax {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 slices = 0, n = 0;
    cuda::Div inner;
};

struct ColumnsParams : reduction::Columns
{
    void const* x = nullptr;
    void* y = nullptr;
};

struct ShortRowsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 rows = 0;
};

} // namespace tw::ops::softmax
