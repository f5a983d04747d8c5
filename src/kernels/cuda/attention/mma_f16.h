// SPDX-License-Identifier: Apache-2.0
// y = softmax(scale q k^T + mask) v in FP16 with float sums, one pass over the keys, for compute capability 8.0 and
// later (mma.sync). A block takes 16 rows of queries for each of its warps, of one head of one batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/cuda/attention/masks.h"
#include "kernels/cuda/common/tensor_map.h"

namespace tw::cuda::attention_f16 {

struct Spec
{
    int headDim = 64;  // of queries and keys: 1 to 256
    int valueDim = 64; // of values: 1 to 256
    int unit = 8;      // elements that a copy moves, see attentionUnit(): 8, 4, 2, 1
    int warps = 4;     // 1, 2, 4, 8
    int keys = 64;     // of one step: 32, 64, 128
    AttentionMasks masks;
    bool integers = false; // y is i8, in steps of *Args::step

    int rows() const { return warps * 16; }
    int threads() const { return warps * 32; }
    // Matrix instructions take 16.
    int paddedHead() const { return (headDim + 15) / 16 * 16; }
    int paddedValue() const { return (valueDim + 15) / 16 * 16; }
    int64_t sharedBytes() const;
    std::string name() const; // "attention_f16_d64_64x64_sm80"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);
constexpr char const* kKernel = "attention";

using Strides = AttentionStrides;
using Args = AttentionArgs;

struct Shape
{
    int64_t batch = 1, heads = 1, sq = 1, sk = 1;
    int64_t begins = -1; // of sequences one behind the other; -1: these are none
};

// Args for q, k, v that lie in one tensor [batch, s, 3, heads, headDim] and y [batch, s, heads, headDim]; without
// addresses of y and mask.
Args packed(Spec const& spec, Shape const& shape, void const* qkv);

// A block for each spec.rows() queries of a head of a batch; or of a sequence, as many as there may be of those.
template <class Spec>
LaunchGeometry launch(Spec const& spec, Shape const& shape)
{
    LaunchGeometry g;
    g.grid = (shape.sq + spec.rows() - 1) / spec.rows();
    if (shape.begins >= 0)
        g.grid = std::min(shape.sq, shape.sq / spec.rows() + shape.begins + 1);
    g.gridY = shape.heads;
    g.gridZ = shape.batch;
    g.block = spec.threads();
    g.sharedBytes = spec.sharedBytes();
    return g;
}

} // namespace tw::cuda::attention_f16
