// SPDX-License-Identifier: Apache-2.0
// Convolutions. After places_*.cuh, window_sums_*.cuh and window_end_*.cuh.
//   int BLOCKS_PER_SM
#pragma once

#include "kernels/cuda/mma/windows.cuh"

namespace tw::cuda::product {

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) convolve(const __grid_constant__ Args a)
{
    extern __shared__ __align__(1024) u8 shared[];
    run<Windows, Sums, End>(a, shared);
}

} // namespace tw::cuda::product
