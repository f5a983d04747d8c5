// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"

namespace tw::cuda::gemm_mma_f16 {

// The text has the same struct.
template <class Element>
struct ArgsOf : OutputOf<Element>
{
    Element const *a = nullptr, *b = nullptr;
    float* sums = nullptr;                        // Launch::sumsBytes
    i64 lda = 0, ldb = 0, batchA = 0, batchB = 0; // elements
    i32 k = 0, tilesM = 0, tilesN = 0;
};

} // namespace tw::cuda::gemm_mma_f16
