// SPDX-License-Identifier: Apache-2.0
// y = f(a b + bias + residual) in FP32 on tensor cores (mma.sync, compute capability 8.0 and later; splitting k needs
// 9.0), for operands that lie in any way. Factors are rounded to TF32; or, where that is not permitted, each is split
// into two TF32 numbers (3xTF32), which hold 21 of its 24 bits, three products of the four are added up, and sums go to
// FP32 registers every 32 steps of k, since tensor cores cut off what sums lose. An infinite factor then gives NaN.
#pragma once

#include "kernels/cuda/gemm/simt_f32.h"

namespace tw::cuda::gemm_mma_f32 {

using gemm_f32::kKernel;
using gemm_f32::Params;

struct Spec : gemm_f32::Operands
{
    int tileM = 128, tileN = 128;
    int warpsM = 2, warpsN = 4; // that share the tile's rows and columns
    int stages = 3;
    int split = 1;       // blocks of a cluster that share a tile's k and add up: 1, 2, 4, 8
    bool tf32x3 = false; // 3xTF32: three products for one

    int threads() const { return warpsM * warpsN * 32; }
    int64_t sharedBytes() const;
    int blocksPerMultiprocessor() const;
    std::string name() const;
};

constexpr int kStepK = 32; // 128 bytes of a row

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);      // after prelude(wide)

// As those of gemm_f32.
LaunchGeometry launch(Spec const& spec, Params& params, int64_t batches);
double estimateUs(Spec const& spec, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors);
std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors,
                             bool clusters, size_t most);

} // namespace tw::cuda::gemm_mma_f32
