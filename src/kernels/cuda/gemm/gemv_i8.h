// SPDX-License-Identifier: Apache-2.0
// Products of up to 16 rows of i8 with b [n, k], for compute capability 8.0 and later (dp4a): each number of b is read
// once, at the speed of memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/gemm/mma_params.h"

namespace tw::cuda::gemv_i8 {

constexpr int kMostRows = 16, kThreads = 128;

struct Spec
{
    IntegerEnd end;
    int rows = 1;          // at least m: 1, 2, 4, 8, 16
    int columns = 4;       // of a warp: 1, 2, 4
    int warpsK = 1;        // that share the k of their columns: 1, 2, 4
    bool packs = true;     // rows of a are whole 16 bytes
    bool constantB = true; // b may be read before the previous kernel of the stream is done

    std::string name() const; // "gemv_i8_4x4_k2_y8_b"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
// m rows of k: what a block of the kernel holds in shared memory.
char const* unsupported(Spec const& spec, int64_t m, int64_t n, int64_t k);
std::string source(Spec const& spec);
constexpr char const* kKernel = "gemv";
constexpr int64_t kMostShared = 96 * 1024;

// Puts sizes into `args`.
LaunchGeometry launch(Spec const& spec, int64_t m, int64_t n, int64_t k, Args& args);
double estimateUs(Spec const& spec, int64_t m, int64_t n, int64_t k, int multiprocessors);
// The best guess first.
std::vector<Spec> candidates(Spec const& base, int64_t m, int64_t n, int64_t k, int multiprocessors, size_t most);

} // namespace tw::cuda::gemv_i8
