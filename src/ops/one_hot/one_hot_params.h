// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::one_hot {

struct Params
{
    void const *indices = nullptr, *values = nullptr; // values: [off, on]
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div inner, depth; // y as [outer, depth, inner]
};

} // namespace tw::ops::one_hot
