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

enum class GemmF16Way : int
{
    kHalf,      // FP16
    kTf32,      // FP32, factors rounded to TF32
    kThreeTf32, // FP32, each factor as two TF32 numbers; b is constant, and a is taken apart by a kernel of its own
};

namespace gemm_f16 {

Support supports(GemmF16Op const& op, Problem const& problem, GemmF16Way way);
std::vector<Config> configs(GemmF16Op const& op, Problem const& problem, GemmF16Way way);
double estimate(GemmF16Op const& op, Problem const& problem, Config const& config, GemmF16Way way);
CudaKernels generate(GemmF16Op const& op, Problem const& problem, Config const& config, GemmF16Way way);

} // namespace gemm_f16

template <GemmF16Op const& op, GemmF16Way way>
constexpr CudaTactic gemmF16Tactic(char const* name, int version)
{
    return CudaTactic(
        name, version, [](Problem const& p, Config const& c) { return gemm_f16::generate(op, p, c, way); },
        [](Problem const& p) { return gemm_f16::supports(op, p, way); },
        [](Problem const& p) { return gemm_f16::configs(op, p, way); }, nullptr,
        [](Problem const& p, Config const& c) { return gemm_f16::estimate(op, p, c, way); }, way == GemmF16Way::kTf32);
}

} // namespace tw::ops
