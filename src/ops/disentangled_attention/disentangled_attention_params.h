// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::disentangled_attention {

struct Params
{
    void const *content = nullptr, *to = nullptr, *from = nullptr;
    void* y = nullptr;
    cuda::i32* positions = nullptr; // [2 s - 1]: of i - j = 1 - s first
    cuda::i32 s = 0, span = 0, batch = 0;
    float factor = 1;
};

} // namespace tw::ops::disentangled_attention
