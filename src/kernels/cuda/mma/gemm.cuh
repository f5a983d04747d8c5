// SPDX-License-Identifier: Apache-2.0
// Products of matrices. After sums_*.cuh and end_*.cuh.
//   int THREADS, BLOCKS_PER_SM
#pragma once

#include "kernels/cuda/mma/matrices.cuh"

namespace tw::cuda::product {

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) gemm(const __grid_constant__ Args a)
{
    extern __shared__ __align__(1024) u8 shared[];
    run<Matrices, Sums, End>(a, shared);
}

} // namespace tw::cuda::product
