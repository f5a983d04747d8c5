// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::proposals {

struct Scored
{
    float low[2], high[2];
    float score;
    cuda::i32 kind;
};

struct Params
{
    void const *boxes = nullptr, *scores = nullptr, *deltas = nullptr, *classes = nullptr, *images = nullptr;
    void *rows = nullptr, *best = nullptr; // y0, y1
    // Of each image: masks [most, words] of the boxes that one covers; keys of those to look at, in any order; these boxes,
    // best first; ranks [count], larger for better scores, 0 for no candidates; how many are looked at.
    cuda::u64 *masks = nullptr, *keys = nullptr;
    Scored* sorted = nullptr;
    cuda::u32 *ranks = nullptr, *looked = nullptr;
    cuda::u32 count = 0, most = 0, words = 0, keep = 0, columns = 0;
    cuda::u32 isShared = 0; // boxes are those of all images
};

} // namespace tw::ops::proposals
