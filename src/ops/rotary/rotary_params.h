// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::rotary {

struct Params
{
    void const *x = nullptr, *c = nullptr, *s = nullptr;
    void* y = nullptr;
    cuda::u64 packs = 0, width = 0, row = 0; // of packed rows: elements of x between tokens and between heads
    cuda::Div heads;
    cuda::Div packsOfRow;
    cuda::Loop<2> rows; // offsets in c and s
};

} // namespace tw::ops::rotary
