// SPDX-License-Identifier: Apache-2.0
// CUDA tactics of matrix products of i8 for compute capability 8.0 and later: the kernels of kernels/cuda/gemm/mma.h,
// which take operands that lie in any way. The config is the tile: {tileM, tileN, warpsM, warpsN, stages, split}.
#pragma once

#include "families/gemm/cuda_gemm.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::gemm_i8 {

// A second operand [k, n] or [n, k] as [n, k] whose rows are whole 16 bytes, if it is a constant that does not lie so.
struct PackedB
{
    bool isNeeded = false;
    int64_t n = 0, k = 0, row = 0;            // bytes of a packed row
    int64_t count = 1, bRow = 0, bColumn = 0; // matrices, and steps in them as they were
};
PackedB packedB(Problem const& problem);
std::string packB(PackedB const& how, Blob const& b);
// How far the batches of b are apart.
Extents batchesOfB(PackedB const& how, Extents batches);

// Sums of i8 on compute capability 8.0 and later.
Support supportsSums(Problem const& problem);

Support supports(Problem const& problem);
std::vector<Config> configs(Problem const& problem);
double estimate(Problem const& problem, Config const& config);
std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);

constexpr CudaTactic tactic(char const* name, int version)
{
    return CudaTactic(name, version, generate, supports, configs, nullptr, estimate);
}

} // namespace tw::ops::gemm_i8
