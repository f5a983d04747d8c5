// SPDX-License-Identifier: Apache-2.0
// CUDA tactics of matrix products, y = f(a b + bias + residual) in FP16, in FP32 with factors
// rounded to TF32, or of i8 with the end that such sums have, by the kernel of kernels/cuda/gemm/wgmma.h (compute capability 9.0), or, in FP16, by that of
// mma.h beside it (8.0 and later, operands that lie in any way). The config is the kernel's tile: {tileP, tileQ, stages,
// groups, pingPong, split, multicast, swap, copies}, and norm where rows are normalized, or stepBytes and ahead of i8;
// or {tileM, tileN, warpsM, warpsN, stages, split, whether operands are copied first}.
#pragma once

#include "families/gemm/cuda_gemm.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

enum class GemmAlgorithm : int
{
    kHalf,    // FP16; what is no constant and has rows that are not whole 16 bytes is copied first
    kHalfMma, // FP16 by mma.sync
    kTf32,    // FP32, factors rounded to TF32
    kNorm,    // FP16, and LayerNorm of the rows by clusters of blocks that hold whole ones
    kInt8,    // i8; b that is constant may lie in any way, else k is contiguous in rows of whole 16 bytes
    kTf32x3,  // FP32, 3xTF32: each factor as two TF32 numbers; b is constant, and a is split by a kernel of its own
};

namespace gemm_f16 {

// The product itself, where no norm is wanted of `algorithm`.
Support supports(Problem const& problem, GemmAlgorithm algorithm);
std::vector<Config> configs(Problem const& problem, GemmAlgorithm algorithm);
double estimate(Problem const& problem, Config const& config, GemmAlgorithm algorithm);
std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config, GemmAlgorithm algorithm);

} // namespace gemm_f16

// `narrow`: the type of what is FP16 above.
template <GemmAlgorithm algorithm, DataType narrow = DataType::kHalf>
constexpr CudaTactic gemmTactic(char const* name, int version)
{
    return CudaTactic(
        name, version, [](Problem const& p, Config const& c) { return gemm_f16::generate(p, c, algorithm); },
        [](Problem const& p) {
            Support s = supportsNorm(p, algorithm == GemmAlgorithm::kNorm);
            s = s.ok ? gemm_f16::supports(p, algorithm) : s;
            return s.ok && isNarrowFloat(p.inputs[0].type) ? takesOnly(narrow, p) : s;
        },
        [](Problem const& p) { return gemm_f16::configs(p, algorithm); }, nullptr,
        [](Problem const& p, Config const& c) { return gemm_f16::estimate(p, c, algorithm); },
        Traits{.rounding = algorithm == GemmAlgorithm::kTf32 ? Rounding::kTf32 : Rounding::kPlain, .type = narrow});
}

} // namespace tw::ops
