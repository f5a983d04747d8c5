// SPDX-License-Identifier: Apache-2.0
// Attention in FP16 where few queries share a head of keys and values, which may be in INT8, for compute capability 8.0 and later: the keys are dealt out to the
// warps of a block and, on 9.0, to the blocks of a cluster, which join what they found at the end. Keys and values go from memory to registers.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/attention/few_rows_params.h"
#include "kernels/cuda/attention/masks.h"
#include "kernels/cuda/attention/mma_f16.h"
#include "kernels/cuda/common/tensor_map.h"

namespace tw::cuda::attention_few_rows {

struct Spec
{
    int headDim = 64, valueDim = 64; // multiples of 32 up to 256
    int warps = 4;                   // 1, 2, 4, 8
    int splits = 1;                  // blocks of a cluster: 1, 2, 4, 8; above 1 for capability 9.0
    int64_t headsPerKey = 1;
    bool table = false; // keys are of several images, see Args
    bool pages = false; // or in blocks
    bool bytes = false; // keys and values
    // New rows are written into the caches (AppendingArgs); of queries and new keys the first `rotary` elements are turned.
    bool appends = false;
    int rotary = 0; // halves, or whole, of them are multiples of 8
    bool interleaved = false, cosinesByPair = false, sinesByPair = false;
    AttentionMasks masks;

    static constexpr int kRows = 16; // of a tile: queries and heads that share keys
    int threads() const { return warps * 32; }
    bool isLarge() const { return headDim > 128 || valueDim > 128; } // queries stand in shared memory
    int64_t sharedBytes() const
    {
        int64_t const floats = warps * (valueDim + 2) + (splits > 1 ? valueDim : 0) + splits * 2; // of a row
        return kRows * (floats * 4 + (isLarge() ? (headDim + 8) * 2 : 0));
    }
    std::string name() const; // "attention_f16_few_d64_w4_s8"
};

using AppendingArgs = AppendingArgsOf<void, void>;

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);
LaunchGeometry launch(Spec const& spec, attention_f16::Shape const& shape);

} // namespace tw::cuda::attention_few_rows
