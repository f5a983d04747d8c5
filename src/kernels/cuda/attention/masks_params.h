// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::cuda {

// Strides in elements; those of masks may be 0. The elements of a head's row are contiguous.
struct AttentionStrides
{
    i64 batch = 0, head = 0, row = 0;
};

template <class Element>
struct AttentionArgsOf
{
    Element const *q = nullptr, *k = nullptr, *v = nullptr; // aligned to 16 bytes
    Element const* mask = nullptr;
    u8 const* keep = nullptr;
    Element* y = nullptr;        // or i8, in steps of *step
    float const* step = nullptr; // of integers
    i32 const* begins = nullptr; // of sequences, see spans.cuh
    AttentionStrides qStride, kStride, vStride, maskStride, keepStride, yStride;
    i32 const* lengths = nullptr;                             // of images
    Element const* sinks = nullptr;                           // of heads
    float const* slopes = nullptr;                            // of heads
    float const *keyScales = nullptr, *valueScales = nullptr; // of heads of k and v, where these are bytes
    i32 sq = 0, sk = 0, beginCount = 0, headsPerKey = 1;      // headsPerKey: neighbours on one head of k and v
    float scale = 1;                                          // of scores, positive; see forKernel()
    float fill = 0;
    i32 window = 0;
    i32 const* table = nullptr; // whose key it is, [images, sk]; of `sharing` images that follow each other
    i32 sharing = 1;
    float softcap = 0, capIn = 0,
          capOut = 0; // a score becomes capOut * tanh(capIn q k); softcap is what these come from
    // Roundings to multiples of a step: what brings a number into steps, and back. Of scores (from q k to units of log2; the
    // kernel then scales by these alone), of sums with the mask, and of weights.
    float scoreSteps = 1, scoreStep = 1, sumSteps = 1, sumStep = 1, weightSteps = 1, weightStep = 1;
    i32 const* pages =
        nullptr; // which of `blocks` blocks has 16 keys and values, [images, sk / 16]; strides of batches are those of blocks then
    i32 blocks = 0;
};

} // namespace tw::cuda
