// SPDX-License-Identifier: Apache-2.0
// Coordinates outside x that come from inside; of single elements, or of whole vectors of channels.
//   type Moved; int kRank; bool kWraps, kClamps, kReflects
#pragma once

#include "families/copy/copy_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops {

TW_INLINE i64 modulo(i64 p, i64 n)
{
    i64 const r = p % n;
    return r < 0 ? r + n : r;
}
TW_INLINE i64 source(i64 p, i64 size)
{
    if (p >= 0 && p < size)
        return p;
    if constexpr (kWraps)
        return modulo(p, size);
    else if constexpr (kClamps)
        return p < 0 ? 0 : size - 1;
    else if constexpr (kReflects) {
        i64 const period = size > 1 ? 2 * (size - 1) : 1, r = modulo(p, period);
        return r < size ? r : period - r;
    } else
        return 0;
}
TW_KERNEL slice_elements(const __grid_constant__ SliceParams p)
{
    waitForPrevious();
    releaseDependents();
    idx const at = threadIndex();
    if (at >= p.count)
        return;
    idx i = at;
    i64 from = 0, to = 0;
#pragma unroll
    for (int r = 7; r >= 8 - kRank; --r) {
        idx const q = r > 8 - kRank ? divide(i, p.dim[r]) : 0;
        if (r == 7)
            to = i64(q) * p.row + i64(i - q * idx(p.dim[r].d));
        from += source(p.start[r] + i64(i - q * idx(p.dim[r].d)) * p.step[r], p.size[r]) * p.stride[r];
        i = q;
    }
    static_cast<Moved*>(p.y)[to] = static_cast<Moved const*>(p.x)[from];
}

} // namespace tw::ops
