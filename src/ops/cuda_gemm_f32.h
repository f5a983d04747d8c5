// SPDX-License-Identifier: Apache-2.0
// CUDA tactics of every op that is a matrix product, in FP32 without rounding of factors, by the kernel of
// kernels/cuda/gemm_f32.h. The config is the kernel's tile: {tileM, tileN, rows, columns, stages, split}.
#pragma once

#include "ops/cuda_gemm_f16.h"

namespace tw::ops {

namespace gemm_f32 {

Support supports(GemmF16Op const& op, Problem const& problem);
std::vector<Config> configs(GemmF16Op const& op, Problem const& problem);
double estimate(GemmF16Op const& op, Problem const& problem, Config const& config);
CudaKernels generate(GemmF16Op const& op, Problem const& problem, Config const& config);

} // namespace gemm_f32

template <GemmF16Op const& op>
constexpr CudaTactic gemmF32Tactic(char const* name, int version)
{
    return CudaTactic(
        name, version, [](Problem const& p, Config const& c) { return gemm_f32::generate(op, p, c); },
        [](Problem const& p) { return gemm_f32::supports(op, p); },
        [](Problem const& p) { return gemm_f32::configs(op, p); }, nullptr,
        [](Problem const& p, Config const& c) { return gemm_f32::estimate(op, p, c); });
}

} // namespace tw::ops
