// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/integer_end_params.h"
#include "kernels/cuda/common/types.h"

namespace tw::cuda::gemv_i8 {

struct Args
{
    i8 const *a = nullptr, *b = nullptr; // [m, k]; [n, ldb], ldb whole 16 bytes, zeros behind k
    void* y = nullptr;                   // [m, n]
    IntegerEndArgs end;
    i64 lda = 0, ldb = 0;
    i32 m = 0, n = 0, k = 0, units = 0; // of 16 bytes in k, rounded up
};

} // namespace tw::cuda::gemv_i8
