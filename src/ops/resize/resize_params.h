// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::resize {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div dim[8]; // of y, the last running fastest
    cuda::i64 in[8] = {}, stride[8] = {};
    cuda::i64 over[8] = {}, under[8] = {}; // the scale as a fraction
};

} // namespace tw::ops::resize
