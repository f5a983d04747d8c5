// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/integer_end_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops {

struct PlainGemmParams
{
    void const *a = nullptr, *b = nullptr, *bias = nullptr, *residual = nullptr;
    void* y = nullptr;
    cuda::i64 m = 0, n = 0, k = 0;
    cuda::i64 aRow = 0, aColumn = 0, bRow = 0, bColumn = 0;
    cuda::Div tilesM, tilesN;
    cuda::Loop<2> batch;      // a, b
    cuda::IntegerEndArgs end; // of sums of i8
};

} // namespace tw::ops
