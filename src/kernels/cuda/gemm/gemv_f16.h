// SPDX-License-Identifier: Apache-2.0
// Products of up to 16 rows of FP16 with b [n, k], for compute capability 8.0 and later (mma.sync): each number of b is read once, from memory into registers,
// and as much of it as these hold while the kernel in front still runs. What is left then is short: no shared memory on the way, no cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/gemm/mma_params.h"

namespace tw::cuda::gemv_f16 {

constexpr int kMostRows = 16;

// Epilogue::aligned and single are not asked for.
struct Spec : Epilogue
{
    int rows = 8;      // at least m: 8, 16
    int tiles = 1;     // of 8 columns, of a block: 1, 2, 4
    int warps = 4;     // of a block, which share k: 2, 4, 8, 16
    int units = 8;     // of 8 numbers, that a thread takes of a column at once: 1 .. 16 / tiles
    int firstNorm = 0; // of rows of a: 1: LayerNorm, 2: RMS; gamma and beta are in b and its bias
    // b's columns come in groups of 16, 8 gates and the 8 columns that `activation` of these lets through; more than one tile then, and no residual.
    bool gated = false;
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
// m rows of k.
char const* unsupported(Spec const& spec, int64_t m, int64_t n, int64_t k);
std::string source(Spec const& spec);
constexpr char const* kKernel = "gemv";

using Args = ArgsOf<void>;

// Puts sizes into `args`.
LaunchGeometry launch(Spec const& spec, int64_t m, int64_t n, int64_t k, Args& args);
double estimateUs(Spec const& spec, int64_t n, int64_t k, int multiprocessors);
// The best guess first.
std::vector<Spec> candidates(Spec const& base, int64_t n, int64_t k, int multiprocessors, size_t most);

} // namespace tw::cuda::gemv_f16
