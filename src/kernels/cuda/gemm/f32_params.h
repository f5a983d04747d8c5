// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::cuda::gemm_f32 {

// The text has the same struct.
struct Params
{
    float const *a = nullptr, *b = nullptr, *bias = nullptr, *residual = nullptr;
    float* y = nullptr;
    i64 m = 0, n = 0, k = 0;
    i64 lda = 0, ldb = 0; // between stored rows
    Div tilesM, tilesN;
    Loop<2> batch; // a, b
};

} // namespace tw::cuda::gemm_f32
