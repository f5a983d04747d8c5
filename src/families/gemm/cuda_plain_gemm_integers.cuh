// SPDX-License-Identifier: Apache-2.0
// Products of i8. After integerEndSource().
#pragma once

#include "families/gemm/cuda_plain_gemm_params.h"
#include "kernels/cuda/common/plain_integers.cuh"

namespace tw::ops {

template <int HALVES>
TW_INLINE void finish(PlainGemmParams const& p, i64 at, idx column, i32 const (&sum)[HALVES])
{
    finishSum(p.end, p.y, at, i32(column), sum[0]);
}

} // namespace tw::ops
