// SPDX-License-Identifier: Apache-2.0
// y = softmax(scale q k^T + mask) v in FP32, one pass over the keys, on tensor cores (mma.sync, compute capability 8.0
// and later). Factors are rounded to TF32; or, where that is not permitted, each is split into two TF32 numbers
// (3xTF32), which hold 21 of its 24 bits, and three products of the four are added up.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/attention/mma_f16.h"

namespace tw::cuda::attention_f32 {

using attention_f16::kKernel;
using attention_f16::launch;
using attention_f16::Shape;

struct Spec
{
    int headDim = 64;    // of queries and keys: 1 to 256
    int valueDim = 64;   // of values: 1 to 256
    int unit = 4;        // elements that a copy moves, see attentionUnit(): 4, 2, 1
    int warps = 4;       // 1, 2, 4, 8
    int blocks = 1;      // of 16 queries for each warp: 1, 2
    int keys = 64;       // of one step: 32, 64
    int parts = 1;       // groups of `warps` that have so many keys each, for few heads: 1, 2, 4
    bool tf32x3 = false; // 3xTF32: three products for one
    AttentionMasks masks;

    int rows() const { return warps * blocks * 16; }
    int threads() const { return warps * parts * 32; }
    // Matrix instructions take 8.
    int paddedHead() const { return (headDim + 7) / 8 * 8; }
    int paddedValue() const { return (valueDim + 7) / 8 * 8; }
    int64_t sharedBytes() const;
    std::string name() const;
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);

} // namespace tw::cuda::attention_f32
