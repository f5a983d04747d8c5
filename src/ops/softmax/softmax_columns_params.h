// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::softmax {

struct ColumnsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 packs = 0, n = 0; // of columns, those of all outer matrices in a row; of the axis
    cuda::Div packsOfRow;
};

} // namespace tw::ops::softmax
