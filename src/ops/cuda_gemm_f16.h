// SPDX-License-Identifier: Apache-2.0
// CUDA tactics of every op that is a matrix product, y = f(a b + bias + residual) in FP16 or in FP32 with factors
// rounded to TF32, by the kernel of kernels/cuda/gemm_f16.h (compute capability 9.0). The config is the kernel's tile:
// {tileP, tileQ, stages, groups, turns, split, multicast, swap, copies}.
#pragma once

#include "ops/activate.h"
#include "ops/cuda_tactic.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops {

// How a node's inputs 0 and 1 are a and b.
struct GemmF16Op
{
    matrix_multiply::Geometry (*geometry)(ir::Node const& node, Extents const& a, Extents const& b);
    // Which of a and b are stored with their last two dimensions the other way round.
    matrix_multiply::Attrs (*operations)(ir::Node const& node);
    FusedActivation const& (*activation)(ir::Node const& node) = nullptr; // null: none
    int bias = -1, residual = -1;                                         // inputs; -1: none
};

namespace gemm_f16 {

Support supports(GemmF16Op const& op, Problem const& problem, DataType type);
std::vector<Config> configs(GemmF16Op const& op, Problem const& problem);
double estimate(GemmF16Op const& op, Problem const& problem, Config const& config);
CudaKernels generate(GemmF16Op const& op, Problem const& problem, Config const& config);

} // namespace gemm_f16

template <GemmF16Op const& op, DataType type>
constexpr CudaTactic gemmTactic(char const* name, int version)
{
    return CudaTactic(
        name, version, [](Problem const& p, Config const& c) { return gemm_f16::generate(op, p, c); },
        [](Problem const& p) { return gemm_f16::supports(op, p, type); },
        [](Problem const& p) { return gemm_f16::configs(op, p); }, nullptr,
        [](Problem const& p, Config const& c) { return gemm_f16::estimate(op, p, c); }, type == DataType::kFloat);
}
template <GemmF16Op const& op>
constexpr CudaTactic gemmF16Tactic(char const* name, int version)
{
    return gemmTactic<op, DataType::kHalf>(name, version);
}
template <GemmF16Op const& op>
constexpr CudaTactic gemmTf32Tactic(char const* name, int version)
{
    return gemmTactic<op, DataType::kFloat>(name, version);
}

} // namespace tw::ops
