// SPDX-License-Identifier: Apache-2.0
// Products on tensor cores by mma.sync (compute capability 8.0 and later), for operands that lie in any way: rows on 16, 8 or
// 4 bytes come to shared memory by asynchronous copies, several steps ahead, others through registers, one step ahead.
// y = f(a b + bias + residual) in FP16 with float sums, or exact sums of i8 and their end (epilogue.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/common/tensor_map.h"
#include "kernels/cuda/gemm/mma_params.h"
#include "kernels/cuda/gemm/wgmma.h"

namespace tw::cuda::gemm_mma {

using gemm_f16::kKernel;
using gemm_f16::Shape; // without an image

struct Spec : Epilogue
{
    std::optional<IntegerEnd> integers; // operands are i8; of the epilogue `aligned` alone is read
    int tileM = 64, tileN = 64;
    int warpsM = 2, warpsN = 2; // that share the tile's rows and columns
    int stages = 3;
    int split = 1;                // blocks that share a tile's k: 1, 2, 4, 8
    bool clusters = true;         // they are a cluster (9.0) and add up, else, of FP16, a second kernel adds up
    bool aAlongK = true;          // a [m, k], else [k, m]
    bool bAlongK = false;         // b [n, k], else [k, n]
    int vectorA = 8, vectorB = 8; // elements that stored rows are multiples of and aligned to: 16, 8, 4 bytes or 1
    bool paddedA = false, paddedB = false; // rows end in zeros, up to whole vectors
    bool constantB = true;                 // b may be read before the previous kernel of the stream is done

    int bytes() const { return integers ? 1 : 2; } // of an element
    int stepK() const { return 128 / bytes(); }
    int threads() const { return warpsM * warpsN * 32; }
    int rows() const { return tileM / warpsM; } // of a warp
    int columns() const { return tileN / warpsN; }
    bool sumsInMemory() const { return split > 1 && !clusters; }
    int64_t tileBytes() const { return int64_t(tileM) * tileN * 4; } // of sums
    int64_t biasBytes() const { return int64_t(tileN) * 4; }
    int64_t stageBytes() const { return int64_t(tileM + tileN) * 128; }
    int64_t stagingBytes() const { return int64_t(threads()) * chunk(); } // y's rows, on their way to it
    int chunk() const; // columns that a warp stages at once on the way to y
    int64_t sharedBytes() const;
    int registers() const; // a guess
    int blocksPerMultiprocessor() const;
    std::string name() const; // "gemm_mma_f16_128x128x64_2x2_s3_tn_v8_v8"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
char const* unsupported(Spec const& spec, Shape const& shape);
std::string source(Spec const& spec);
constexpr char const* kFinishKernel = "finish"; // where sumsInMemory()

// The widest vector of elements of so many bytes for rows and batches so far apart.
int vectorOf(int bytes, int64_t ld, int64_t batch = 0);

using Args = ArgsOf<void>;

template <class Args>
struct LaunchOf
{
    Args args; // without addresses; of i8 without batches
    LaunchGeometry geometry;
    LaunchGeometry finish; // where sumsInMemory(), with the same parameter
    int64_t sumsBytes = 0;
};
using Launch = LaunchOf<Args>;
Launch launch(Spec const& spec, Shape const& shape);
LaunchOf<IntegerArgs> launchIntegers(Spec const& spec, Shape const& shape);

// A guess of the kernel's time, for ordering.
double estimateUs(Spec const& spec, int64_t m, int64_t n, int64_t k, int64_t batches, int multiprocessors);
// The tiles worth timing on a GPU of that capability, the best guess first, at most so many. `base` says all but tile,
// stages and split.
std::vector<Spec> candidates(Spec const& base, Shape const& shape, int multiprocessors, int capability, size_t most);

} // namespace tw::cuda::gemm_mma
