// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/params.h"
#include "kernels/cuda/common/types.h"

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

namespace tw::ops::product_norm {

// Rows of y in place.
struct Params
{
    void const *gamma = nullptr, *beta = nullptr;
    void* y = nullptr;
    cuda::u64 rows = 0, n = 0;
    float epsilon = 0;
};

} // namespace tw::ops::product_norm

namespace tw::ops::first_norm {

// Rows of k numbers.
struct Params
{
    void const* a = nullptr;
    void* to = nullptr;
    cuda::u64 k = 0;
    float epsilon = 0;
};

} // namespace tw::ops::first_norm
