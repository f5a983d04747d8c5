// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::pooling {

struct BandsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 countX = 0;
    cuda::Div bands; // of a plane
    cuda::i32 planes = 0, h = 0, outH = 0, padH = 0, afterH = 0, afterW = 0;
};

} // namespace tw::ops::pooling
