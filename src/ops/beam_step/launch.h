// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "families/decoding/tensors.h"
#include "ops/beam_step/beam_step_params.h"
#include "ops/beam_step/op.h"
#include "tactic/tactic.h"

namespace tw::ops::beam_step {

inline Params paramsOf(RunArgs const& args)
{
    std::span<TensorRef const> const in = args.inputs;
    std::span<TensorRef> const out = args.outputs;
    auto const ints = [&](int i) -> int32_t const* { return in[size_t(i)].as<int32_t>(); };
    auto const floats = [&](int i) -> float const* { return in[size_t(i)].as<float>(); };
    auto const outInts = [&](int i) { return out[size_t(i)].as<int32_t>(); };
    Params p{.scores = floats(kScores),
             .sequences = ints(kSequences),
             .lengths = ints(kLengths),
             .prompts = ints(kPrompts),
             .sums = floats(kSums),
             .done = ints(kDone),
             .endSequences = ints(kEndSequences),
             .endLengths = ints(kEndLengths),
             .endScores = floats(kEndScores),
             .floats = floats(kFloats),
             .ints = ints(kInts),
             .ends = decoding::endsAt(in, kEndIds),
             .tokens = outInts(kTokens),
             .parents = outInts(kParents),
             .nextSequences = outInts(kNextSequences),
             .nextLengths = outInts(kNextLengths),
             .nextSums = out[kNextSums].as<float>(),
             .nextDone = outInts(kNextDone),
             .nextEndSequences = outInts(kNextEndSequences),
             .nextEndLengths = outInts(kNextEndLengths),
             .nextEndScores = out[kNextEndScores].as<float>(),
             .keys = static_cast<uint64_t*>(args.workspace),
             .vocabulary = int32_t(in[kScores].dims[1]),
             .capacity = int32_t(in[kSequences].dims[2]),
             .beams = int32_t(in[kSequences].dims[1]),
             .floatColumns = int32_t(in[kFloats].dims[1]),
             .intColumns = int32_t(in[kInts].dims[1])};
    if (out.size() > kNextPlaces) {
        p.places = ints(kPlaces);
        p.nextPlaces = outInts(kNextPlaces);
    }
    return p;
}

inline int64_t keyBytes(std::span<TensorRef const> in)
{
    int64_t const beams = in[kSequences].dims[1];
    return in[kSequences].dims[0] * beams * 2 * beams * int64_t(sizeof(uint64_t));
}

} // namespace tw::ops::beam_step
