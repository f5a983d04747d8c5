// SPDX-License-Identifier: Apache-2.0
// CUDA tactics of products y = f(a b + bias + residual) in FP16, or of i8 with the end that such sums have, whose constant b
// follows 2:4 along the summed dimension (tactic/sparsity.h), by the kernel of kernels/cuda/gemm/wgmma_sparse.h. The config
// is its tile: {tileP, tileQ, stages, multicast}.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::gemm_sparse {

Support supports(Problem const& problem, DataType factors); // kHalf, kInt8
std::vector<Config> configs(Problem const& problem);
double estimate(Problem const& problem, Config const& config);
std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);

template <DataType factors>
constexpr CudaTactic tactic(char const* name, int version)
{
    return CudaTactic(
        name, version, generate, [](Problem const& p) { return supports(p, factors); }, configs, nullptr, estimate,
        Traits{.isSparse = true});
}

} // namespace tw::ops::gemm_sparse
