// SPDX-License-Identifier: Apache-2.0
// The slot of y that tuple t of indices names.
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/scatter/scatter_params.h"

namespace tw::ops::scatter {

// Negative: outside.
TW_INLINE i64 slotOf(Params const& p, idx t)
{
    off at[1] = {0};
    if (p.isElement)
        locate<8>(p.loop, t, at);
    i64 slot = at[0];
    i32 const* const j = static_cast<i32 const*>(p.j) + t * idx(p.indices);
    for (int k = 0; k < p.indices; ++k) {
        i64 const index = j[k], c = index < 0 ? index + p.size[k] : index;
        if (c < 0 || c >= p.size[k])
            return -1;
        slot += c * p.stride[k];
    }
    return slot;
}

} // namespace tw::ops::scatter
