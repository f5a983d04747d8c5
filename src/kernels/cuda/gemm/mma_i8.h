// SPDX-License-Identifier: Apache-2.0
// Products of i8 with exact sums on tensor cores (mma.sync, compute capability 8.0 and later) and the end of such sums
// (integer_end.h), for operands that lie in any way: rows on 16, 8 or 4 bytes come to shared memory by asynchronous
// copies, several steps ahead, others through registers, one step ahead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/common/integer_end.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/gemm/mma_i8_params.h"

namespace tw::cuda::gemm_mma_i8 {

// What does not depend on the tile.
struct Operands
{
    IntegerEnd end;
    bool aAlongK = true;            // a [m, k], else [k, m]
    bool bAlongK = true;            // b [n, k], else [k, n]
    int vectorA = 16, vectorB = 16; // bytes that stored rows are multiples of and aligned to: 16, 8, 4 or 1
    bool aligned = true;            // rows of y are multiples of 8 elements
    bool constantB = true;          // b may be read before the previous kernel of the stream is done
};

struct Spec : Operands
{
    int tileM = 64, tileN = 64;
    int warpsM = 2, warpsN = 2; // that share the tile's rows and columns
    int stages = 4;
    int split = 1; // blocks of a cluster (9.0) that share a tile's k and add up: 1, 2, 4, 8

    int threads() const { return warpsM * warpsN * 32; }
    int rows() const { return tileM / warpsM; } // of a warp
    int columns() const { return tileN / warpsN; }
    int64_t stageBytes() const;
    int64_t sharedBytes() const;
    int registers() const; // a guess
    int blocksPerMultiprocessor() const;
    std::string name() const; // "gemm_mma_i8_128x128x128_2x2_s3_tt_v16_v16_y8_b"
};

constexpr int kStepK = 128;

struct Shape
{
    int64_t m = 0, n = 0, k = 0, batches = 1;
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
char const* unsupported(Spec const& spec, Shape const& shape);
std::string source(Spec const& spec);
constexpr char const* kKernel = "gemm";

// The widest copies for rows so long: 16, 8, 4 or 1.
int vectorOf(int64_t row);

// Sizes and tiles of `args`.
LaunchGeometry launch(Spec const& spec, Shape const& shape, Args& args);

// A guess of the kernel's time, for ordering.
double estimateUs(Spec const& spec, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors);
// The tiles worth timing on a GPU of that capability, the best guess first, at most so many. `base` says all but tile,
// stages and split.
std::vector<Spec> candidates(Spec const& base, Shape const& shape, int multiprocessors, int capability, size_t most);

} // namespace tw::cuda::gemm_mma_i8
