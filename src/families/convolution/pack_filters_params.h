// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops {

struct FilterParams
{
    void const* from = nullptr; // [filters, ofFilter, positions]
    void* to = nullptr;  // `each` elements for a filter: channels of one position, then the next; zeros elsewhere
    cuda::i64 count = 0; // of `to`
    cuda::i32 filters = 0, ofFilter = 0, positions = 0, each = 0, channels = 0;
    cuda::i32 toTf32 = 0; // rounded
};

} // namespace tw::ops
