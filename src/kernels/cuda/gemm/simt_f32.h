// SPDX-License-Identifier: Apache-2.0
// y = f(a b + bias + residual) in FP32, every product and sum rounded to FP32, on the cores of any GPU (compute
// capability 8.0 and later; splitting k needs 9.0). A block has one tile of y, its threads a part of it each; factors
// come to shared memory by asynchronous copies, several steps ahead, and lie there as they do in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/extents.h"
#include "kernels/cuda/common/params.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/gemm/simt_f32_params.h"

namespace tw::cuda::gemm_f32 {

// What does not depend on the tile.
struct Operands
{
    bool aAlongK = true;   // a [m, k], else [k, m]
    bool bAlongK = false;  // b [n, k], else [k, n]
    bool packsA = true;    // rows of a as stored are multiples of 4 and aligned to 16 bytes
    bool packsB = true;    // the same of b
    bool packsY = true;    // of y and the residual
    bool constantB = true; // b may be read before the previous kernel of the stream is done
    bool bias = false, residual = false;
    std::string activation; // text that defines activate(); applied last
};

struct Spec : Operands
{
    int tileM = 128, tileN = 128;
    int rows = 8, columns = 8; // of a thread: 4 or 8, and 4, 8 or 16
    int stages = 4;
    int split = 1; // blocks of a cluster that share a tile's k and add up: 1, 2, 4, 8

    int threads() const { return tileM / rows * (tileN / columns); }
    int64_t sharedBytes() const;
    int blocksPerMultiprocessor() const;
    std::string name() const;
};

constexpr int kStepK = 16; // 64 bytes of a row

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);      // after prelude(wide)
constexpr char const* kKernel = "gemm";

// The flags above, struct Params, copies of tiles of `step` elements of k to shared memory.
std::string loaderSource(Operands const& operands, int step, int threads, bool skewed);

// Tiles and geometry; m, n and k are set. `batches`: of params.batch.
LaunchGeometry launch(Spec const& spec, Params& params, int64_t batches);

// A guess of the kernel's time, for ordering.
double estimateUs(Spec const& spec, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors);
// The tiles worth timing, the best guess first, at most so many. `base` says all but tile, stages and split.
std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors,
                             bool clusters, size_t most);

} // namespace tw::cuda::gemm_f32
