// SPDX-License-Identifier: Apache-2.0
// What attention kernels share: their arguments, and masks. Scores are in units of log2 from the masks on, so that
// exponentials are powers of two.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "kernels/cuda/attention/masks_params.h"

namespace tw::cuda {

struct AttentionMasks
{
    bool single = false;   // mask, q, k, v and y are FP32, else FP16
    bool mask = false;     // added to the scaled scores
    bool maskRows = true;  // false: one row for all queries
    bool keep = false;     // bytes; where one is zero, the score is Args::fill
    bool keepRows = true;  // as maskRows
    bool inverted = false; // where it is not zero
    bool pairs = false;    // sk and the strides of mask and keep are even, and addresses multiples of a pair's size
    bool causal = false;   // query i of sq sees keys up to i + sk - sq
    // What is rounded to multiples of a step, as a quantize and a dequantize do: -128 to 127 of them, NaN gives 0.
    bool scoreSteps = false, sumSteps = false; // the latter not together with causal
    bool weightSteps = false; // of the softmax: keys are walked over twice where a step does not hold them all
    bool segments = false;    // keys are those of the query's sequence, see spans.cuh; without mask, keep and causal

    // What decoders have: keys by images; query i at place i + keys - sq sees keys from that less window on, of those up to it (`causal`);
    // scores that are capped, scores of nothing, slopes by distance. places: a query that sees no key gives 0.
    bool lengths = false, window = false, softcap = false, sinks = false, slopes = false, places = false;

    bool any() const { return mask || keep || scoreSteps || sumSteps || softcap || slopes; }
    int registers(int keys) const; // that masks take for a step of so many keys
    std::string name() const;      // "_mask_causal"
};

using AttentionArgs = AttentionArgsOf<void>;

// The steps of roundings; 0: there is none.
struct AttentionSteps
{
    double scores = 0, sums = 0, weights = 0;
};
// What kernels take: scale, fill and steps as they want them.
AttentionArgs forKernel(AttentionArgs args, AttentionSteps const& steps = {});

// Elements that copies may move at once, of 16 bytes or less, where rows begin at these places and at multiples of
// them.
int attentionUnit(int bytesOfElement, std::initializer_list<int64_t> places);

// Structs, exp2Of(), sums and tops of a row, and masks for steps of KEYS keys, which the text before defines.
std::string attentionSource(AttentionMasks const& masks);

} // namespace tw::cuda
