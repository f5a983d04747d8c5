// SPDX-License-Identifier: Apache-2.0
// y = f(a b + bias + residual) in FP32 (compute capability 8.0 and later; splitting k needs 9.0), for operands that lie in
// any way. A block has one tile of y; factors come to shared memory by asynchronous copies, several steps ahead, and lie
// there as they do in memory. Every product and sum is rounded to FP32, on the cores; or tensor cores multiply (mma.sync):
// factors are rounded to TF32, or, where that is not permitted, each is split into two TF32 numbers (3xTF32), which hold 21
// of its 24 bits, three products of the four are added up, and sums go to FP32 registers every 32 steps of k, since tensor
// cores cut off what sums lose. An infinite factor then gives NaN.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/extents.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/gemm/mma_params.h"

namespace tw::cuda::gemm_f32 {

enum class Sums : int
{
    kCores,  // products and sums of FP32
    kTf32x3, // tensor cores, 3xTF32: each factor as two TF32 numbers
    kTf32,   // tensor cores, factors rounded to TF32
};

struct Spec
{
    Sums sums = Sums::kCores;
    bool aAlongK = true;   // a [m, k], else [k, m]
    bool bAlongK = false;  // b [n, k], else [k, n]
    bool packsA = true;    // rows of a as stored are multiples of 4 and aligned to 16 bytes
    bool packsB = true;    // the same of b
    bool packsY = true;    // of y and the residual
    bool constantB = true; // b may be read before the previous kernel of the stream is done
    bool bias = false, residual = false;
    std::string
        epilogue; // source of `float epilogue(float v, float r)`, of the sum with its bias and of the residual or 0
    int tileM = 128, tileN = 128;
    // Cores: rows and columns of a thread, 4 or 8, and 4, 8 or 16. Tensor cores: warps that share the tile's.
    int shareM = 8, shareN = 8;
    int stages = 4;
    int split = 1; // blocks of a cluster that share a tile's k and add up: 1, 2, 4, 8

    bool onCores() const { return sums == Sums::kCores; }
    int stepK() const { return onCores() ? 16 : 32; } // 64 or 128 bytes of a row
    int threads() const { return onCores() ? tileM / shareM * (tileN / shareN) : shareM * shareN * 32; }
    int64_t sharedBytes() const;
    int blocksPerMultiprocessor() const;
    std::string name() const; // "gemm_tf32_128x128x32_2x4_s3_tn"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);      // after prelude(wide)
constexpr char const* kKernel = "gemm";

// Tiles and geometry; m, n and k are set. `batches`: of params.batch.
LaunchGeometry launch(Spec const& spec, Params& params, int64_t batches);

// A guess of the kernel's time, for ordering.
double estimateUs(Spec const& spec, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors);
// The tiles worth timing, the best guess first, at most so many. `base` says all but tile, stages and split.
std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors,
                             bool clusters, size_t most);

} // namespace tw::cuda::gemm_f32
