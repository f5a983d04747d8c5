// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::resize {

// Element o of y stands at (times * o + plus) / by in x, rounded down: exact. `by` is added to keep it from going below
// zero, and 1 taken from the quotient.
struct Scale
{
    cuda::Div by, step; // step: times, 1 where that is 0
    cuda::i64 times = 0, plus = 0, in = 1, out = 1;
    float inverse = 1; // of `by`
    cuda::i32 pad = 0;
};

} // namespace tw::ops::resize
