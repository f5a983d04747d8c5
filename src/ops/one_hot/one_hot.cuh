// SPDX-License-Identifier: Apache-2.0
// An element of y a thread.
//   type Element
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/one_hot/one_hot_params.h"

namespace tw::ops::one_hot {

TW_KERNEL one_hot(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const row = divide(i, p.inner), outer = divide(row, p.depth);
    idx const at = i - row * idx(p.inner.d);
    i64 const d = i64(row - outer * idx(p.depth.d));
    i64 const index = static_cast<i32 const*>(p.indices)[outer * idx(p.inner.d) + at];
    bool const on = index == d || index + i64(p.depth.d) == d;
    static_cast<Element*>(p.y)[i] = static_cast<Element const*>(p.values)[on];
}

} // namespace tw::ops::one_hot
