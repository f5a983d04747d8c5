// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/integer_end_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::cuda::gemm_mma {

// The text has the same structs.
template <class Element>
struct ArgsOf : OutputOf<Element>
{
    Element const *a = nullptr, *b = nullptr;
    float* sums = nullptr;                        // Launch::sumsBytes
    i64 lda = 0, ldb = 0, batchA = 0, batchB = 0; // elements
    i32 k = 0, tilesM = 0, tilesN = 0;
};
struct IntegerArgs
{
    i8 const *a = nullptr, *b = nullptr;
    void* y = nullptr; // [batches, m, n], as the residual
    IntegerEndArgs end;
    i64 lda = 0, ldb = 0;   // between stored rows
    i64 endA = 0, endB = 0; // bytes of all of an operand
    i32 m = 0, n = 0, k = 0, tilesM = 0, tilesN = 0, batches = 1;
    Loop<2> batch; // a, b
};

} // namespace tw::cuda::gemm_mma
