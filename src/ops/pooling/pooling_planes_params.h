// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::pooling {

struct PlanesParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0; // threads with work
    cuda::Div wide, groups;
    cuda::i32 h = 0, w = 0, outH = 0, outW = 0, padH = 0, afterH = 0, afterW = 0, pad = 0;
};

} // namespace tw::ops::pooling
