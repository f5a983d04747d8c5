// SPDX-License-Identifier: Apache-2.0
// y = f(a b + bias + residual) in FP16 with float sums, or of i8 with exact sums and the end that these have (Spec::integers),
// for constant b whose k follows 2:4 (sparse_weights.h), for compute capability 9.0: sparse wgmma fed by TMA, at up to twice
// the rate of wgmma.h. The same kernel is the convolution of an NHWC image (no groups), whose filters are b.
#pragma once

#include "kernels/cuda/gemm/sparse_weights.h"
#include "kernels/cuda/gemm/wgmma.h"
#include "kernels/cuda/gemm/wgmma_params.h"

namespace tw::cuda::gemm_sparse {

using gemm_f16::Shape;

struct Spec : Epilogue
{
    int tileP = 128, tileQ = 256; // filters (columns of y): 64, 128 or 256; pixels (rows): a multiple of 16, up to 256
    int stages = 3;               // of 128 bytes of k
    int multicast = 1;            // blocks of a cluster, neighbours in P, that share their pixels: 1, 2
    bool ahead = true;            // a step's products are begun before those of the step before have ended
    bool image = false;           // a is an NHWC image
    // Factors of i8, whose end makes i8 without a table, of an i8 residual if any, in place of what Epilogue has.
    std::optional<IntegerEnd> integers;

    int64_t operandBytes() const { return integers ? 1 : 2; } // y's and the residual's, too
    bool hasResidual() const { return integers ? integers->residual : residual; }
    // Elements of k that a step has: of b's rows, or of the channels of each position of a filter, filled up with zeros.
    int64_t stepK() const { return stepOf(operandBytes()); }
    int sums() const { return tileP * tileQ / 256; }   // of a thread
    bool redistributes() const { return sums() > 64; } // registers, from the copying warps to those that multiply
    int threads() const { return 256 + (redistributes() ? 128 : 32); }
    int64_t stageBytes() const;
    int64_t sharedBytes() const;
    int blocksPerMultiprocessor() const;
    // "conv_f16_sparse_128x256x64_s3", unique for each spec that supported() takes.
    std::string name() const;
};

// Null, or why the kernel does not exist.
char const* unsupported(Spec const& spec);
std::string source(Spec const& spec);
constexpr char const* kKernel = "gemmSparse";

// Why this shape cannot run, or null. One matrix; b is packed, so its strides are not looked at.
char const* unsupported(Spec const& spec, Shape const& shape);

using Args = ArgsOf<void>;

struct Launch
{
    TensorMapSpec q; // a's
    TensorMapSpec y; // the residual's too
    Args args;       // without addresses
    LaunchGeometry geometry;
};
Launch launch(Spec const& spec, Shape const& shape, int multiprocessors);

// A guess of the kernel's time, for ordering.
double estimateUs(Spec const& spec, Shape const& shape, int multiprocessors);
// The tiles worth timing, the best guess first, at most so many; none: the shape cannot run. `base` says all but tile,
// stages and multicast.
std::vector<Spec> candidates(Spec const& base, Shape const& shape, int multiprocessors, size_t most);

} // namespace tw::cuda::gemm_sparse
