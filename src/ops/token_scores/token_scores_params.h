// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/decoding/row_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops::token_scores {

struct Params
{
    void const* logits = nullptr;
    cuda::i32 const *sequences = nullptr, *lengths = nullptr, *prompts = nullptr;
    float const* floats = nullptr;
    cuda::i32 const* ints = nullptr;
    decoding::Ends ends;
    decoding::Words bad;
    float* y = nullptr;
    cuda::u32* counts = nullptr; // [rows, tokens]
    cuda::i32 tokens = 0, capacity = 0, beams = 0, floatColumns = 0, intColumns = 0;
    cuda::u32 isLogSoftmax = 0;
};

} // namespace tw::ops::token_scores
