// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::pooling {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div out[3];
    cuda::i64 in[3] = {}, window[3] = {}, stride[3] = {}, before[3] = {}, after[3] = {};
};

} // namespace tw::ops::pooling
