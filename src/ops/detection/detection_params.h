// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::detection {

struct Params
{
    void const *boxes = nullptr, *scores = nullptr, *anchors = nullptr;
    void *counts = nullptr, *outBoxes = nullptr, *outScores = nullptr, *outClasses = nullptr; // counts: of rows, too
    void* outRows = nullptr;
    // Of each image: keys of candidates [elements], in whose place bytes say which are out of question; how many
    // candidates scores of each bin have; numbers (kListed ...); boxes that stay, four floats and their class;
    // those that are written, box and class; numbers of each class, written and seen.
    void *list = nullptr, *bins = nullptr, *numbers = nullptr, *kept = nullptr, *keptClasses = nullptr;
    void *found = nullptr, *ofClass = nullptr;
    cuda::u32 items = 0, count = 0, classes = 0, boxClasses = 0, anchorItems = 0; // count: boxes of an image
    cuda::u32 most = 0, mostOfClass = 0, limit = 0, limitOfClass = 0, keptRoom = 0;
    cuda::i32 background = -1, noClass = 0;
    float least = 0, overlap = 0;
    cuda::u32 firstKey = 0, shift = 0; // of bins: (key - firstKey) >> shift
    cuda::u32 isPacked = 0;            // scores may be read 16 bytes at a time
    cuda::u32 isSecond = 0;            // images that are done are left out
};

} // namespace tw::ops::detection
