// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops {

struct SliceParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div dim[8];                                                    // of y, the last running fastest
    cuda::i64 size[8] = {}, start[8] = {}, step[8] = {}, stride[8] = {}; // in x
};

} // namespace tw::ops
