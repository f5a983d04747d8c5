// SPDX-License-Identifier: Apache-2.0
// Products of up to 4 rows of FP16 or BF16 with a constant matrix, for compute capability 8.0 and later: each number of it is read
// once, at the speed of memory, and the first ones before the kernel in front is done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/gemm/mma_params.h"

namespace tw::cuda::gemv_f16 {

constexpr int kMostRows = 4;

struct Spec : Epilogue
{
    bool alongK = false; // b is [n, k], else [k, n]
    bool packs = true;   // rows of a are whole 16 bytes
    bool gated = false;
    int rows = 1;     // at least m: 1, 2, 4
    int columns = 16; // of a block: 16, 32, 64; alongK, of a warp: 1, 2, 4
    int warps = 8;    // 4, 8, 16
    int split = 1;    // blocks of a cluster (9.0) that share k, 1 alongK
    int depth = 8;    // reads that a thread has on their way

    int blockColumns() const { return alongK ? warps * columns : columns; }
    int threads() const { return warps * 32; }
    std::string name() const; // "gemv_f16_1x16_w8_d8"
};

struct Shape
{
    int64_t m = 0, n = 0, k = 0; // n: columns of b
    int64_t lda = 0, ldb = 0;
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
char const* unsupported(Spec const& spec, Shape const& shape);
std::string source(Spec const& spec);
constexpr char const* kKernel = "gemv";
constexpr int64_t kMostShared = 96 * 1024;

using Args = ArgsOf<void>;
// Puts sizes into `args`.
LaunchGeometry launch(Spec const& spec, Shape const& shape, Args& args);
double estimateUs(Spec const& spec, Shape const& shape, int multiprocessors);
// The best guess first.
std::vector<Spec> candidates(Spec const& base, Shape const& shape, int multiprocessors, int capability, size_t most);

} // namespace tw::cuda::gemv_f16
