// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::fill {

struct Params
{
    void* y = nullptr;
    void const *alphaInput = nullptr, *betaInput = nullptr; // null: the numbers below
    cuda::u64 count = 0, state = 0;
    double alpha = 0, beta = 0;
    cuda::Div dim[8]; // of y, the last running fastest
    cuda::i32 rank = 0, pad = 0;
};

} // namespace tw::ops::fill
