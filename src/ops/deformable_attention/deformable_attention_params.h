// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::deformable_attention {

struct Params
{
    void const *value = nullptr, *locations = nullptr, *weights = nullptr;
    cuda::i32 const *shapes = nullptr, *starts = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;             // packs of y
    cuda::Div packs, heads, queries; // packs of a head
    cuda::i64 rows = 0;
    cuda::i32 levels = 0, points = 0;
};

} // namespace tw::ops::deformable_attention
