// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::lrn {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div plane, channels;
};

} // namespace tw::ops::lrn
