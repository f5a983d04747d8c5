// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops {

constexpr int kMaxCudaOperands = 8;

struct PointwiseParams
{
    void const* in[kMaxCudaOperands] = {};
    void* out = nullptr;
    cuda::u64 packs = 0;
    cuda::i32 unit[kMaxCudaOperands] = {}; // step of an operand along a row: 0 or 1
    cuda::i32 tail = 0;                    // elements of the last pack when it is not full; one row only
    cuda::i32 pad = 0;
    cuda::i64 yImage = 0, yPixel = 0;  // elements, of the kernel over images, pixels and packs of channels
    cuda::Loop<kMaxCudaOperands> loop; // over packs
};

} // namespace tw::ops
