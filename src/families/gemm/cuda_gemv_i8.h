// SPDX-License-Identifier: Apache-2.0
// CUDA tactic of products of few rows of i8: kernels/cuda/gemm/gemv_i8.h. The config: {rows, columns, warps that share k}.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::gemv_i8 {

Support supports(Problem const& problem);
std::vector<Config> configs(Problem const& problem);
double estimate(Problem const& problem, Config const& config);
std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);

constexpr CudaTactic tactic(char const* name, int version)
{
    return CudaTactic(name, version, generate, supports, configs, nullptr, estimate);
}

} // namespace tw::ops::gemv_i8
