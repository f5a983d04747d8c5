// SPDX-License-Identifier: Apache-2.0
// y = softmax(scale q k^T + mask) v as in attention_f16.h, for compute capability 9.0: wgmma, fed by the tensor copy
// engine. Each warpgroup takes 64 rows of queries of one head; one more copies, or a thread of a group that is
// alone. The next scores are multiplied while this step's values are.
#pragma once

#include "kernels/cuda/attention/mma_f16.h"

namespace tw::cuda::attention_wgmma_f16 {

using attention_f16::kKernel;
using attention_f16::launch;

struct Spec
{
    int headDim = 64; // 64 or 128
    int groups = 2;   // 1, 2, 3
    int keys = 128;   // of one step: 16 to 256 in steps of 16
    int stages = 2;   // of keys and of values
    AttentionMasks masks;
    bool integers = false; // y is i8, in steps of *Args::step

    int rows() const { return groups * 64; }
    int threads() const { return groups * 128 + (groups > 1 ? 128 : 0); }
    int64_t sharedBytes() const;
    std::string name() const; // "attention_f16_d64_128x128_wgmma"
};

char const* unsupported(Spec const& spec); // null, or why there is no such kernel
std::string source(Spec const& spec);

// Of q, k and v; strides in elements, multiples of 8. The kernel takes the three maps, then attention_f16::Args, whose
// strides of q, k and v it does not read.
struct Maps
{
    TensorMapSpec q, k, v;
};
Maps maps(Spec const& spec, attention_f16::Shape const& shape, attention_f16::Args const& args);

} // namespace tw::cuda::attention_wgmma_f16
