// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::topk {

struct Params
{
    void const* x = nullptr;
    void *values = nullptr, *indices = nullptr;
    cuda::u64 n = 0;
    cuda::i64 k = 0;
    cuda::Div inner;
};

} // namespace tw::ops::topk
