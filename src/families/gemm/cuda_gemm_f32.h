// SPDX-License-Identifier: Apache-2.0
// CUDA tactics of matrix products, in FP32, for operands that lie in any way: by the kernels of
// kernels/cuda/gemm/f32.h. The config is the kernel's tile: {tileM, tileN, shareM, shareN, stages, split}.
#pragma once

#include "families/gemm/cuda_gemm.h"
#include "kernels/cuda/gemm/f32.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

using GemmF32Algorithm = cuda::gemm_f32::Sums;

namespace gemm_f32 {

Support supports(Problem const& problem, GemmF32Algorithm algorithm);
std::vector<Config> configs(Problem const& problem, GemmF32Algorithm algorithm);
double estimate(Problem const& problem, Config const& config, GemmF32Algorithm algorithm);
std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config, GemmF32Algorithm algorithm);

} // namespace gemm_f32

template <GemmF32Algorithm algorithm>
constexpr CudaTactic gemmF32Tactic(char const* name, int version)
{
    return CudaTactic(
        name, version, [](Problem const& p, Config const& c) { return gemm_f32::generate(p, c, algorithm); },
        [](Problem const& p) { return gemm_f32::supports(p, algorithm); },
        [](Problem const& p) { return gemm_f32::configs(p, algorithm); }, nullptr,
        [](Problem const& p, Config const& c) { return gemm_f32::estimate(p, c, algorithm); },
        Traits{.rounding = algorithm == GemmF32Algorithm::kTf32 ? Rounding::kTf32 : Rounding::kPlain});
}

} // namespace tw::ops
