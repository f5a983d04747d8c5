// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/decoding/row_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops::sample {

struct Params
{
    float const* scores = nullptr;
    void const* logits = nullptr;
    cuda::i32 const *sequences = nullptr, *lengths = nullptr, *prompts = nullptr;
    float const* floats = nullptr;
    cuda::i32 const* ints = nullptr;
    decoding::Ends ends;
    decoding::Words stop;
    cuda::i32 *token = nullptr, *finished = nullptr;
    float* log = nullptr;
    cuda::i32 *nextSequences = nullptr, *nextLengths = nullptr;
    cuda::i32 tokens = 0, capacity = 0, floatColumns = 0, intColumns = 0;
};

} // namespace tw::ops::sample
