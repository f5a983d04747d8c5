// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops::recurrence {

// Null: an optional input that is not given. Strides as in Sizes (op.h).
struct Params
{
    void const *x = nullptr, *w = nullptr, *r = nullptr, *bias = nullptr, *h0 = nullptr, *c0 = nullptr,
               *peepholes = nullptr;
    int const* lengths = nullptr;
    void *y = nullptr, *h = nullptr, *c = nullptr;
    float* rows = nullptr; // workspace: kRows rows of `hidden` numbers for each block
    cuda::i64 steps = 0, batch = 0, inputs = 0, hidden = 0;
    cuda::i64 xStep = 0, xRow = 0, yStep = 0, yRow = 0, stateDir = 0, stateRow = 0;
};

} // namespace tw::ops::recurrence
