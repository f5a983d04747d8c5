// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops {

struct RunParams
{
    void const* x[8] = {};
    void const* fill = nullptr;
    void* y = nullptr;
};

// Where pieces of rows come from, a constant of the source. In bytes but for column and length; at: place of the run in
// shared memory.
struct RunPlace
{
    cuda::i64 bytes, first, planeStep, lineStep;
    cuda::u32 column, length, at;
};

} // namespace tw::ops
