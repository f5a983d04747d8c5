// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::nms {

struct Params
{
    void const *boxes = nullptr, *scores = nullptr, *most = nullptr, *overlap = nullptr, *least = nullptr;
    void *rows = nullptr, *total = nullptr; // y0, y1
    // Of each group, a class of a batch item: its boxes that stay, best first; how many; which are out of question.
    void *lists = nullptr, *sizes = nullptr, *gone = nullptr;
    cuda::u32 items = 0, count = 0, classes = 0, boxClasses = 0;
    cuda::u64 limit = 0;
};

} // namespace tw::ops::nms
