// SPDX-License-Identifier: Apache-2.0
// A dimension a thread.
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/shape/shape_params.h"

namespace tw::ops::shape {

TW_KERNEL shape(const __grid_constant__ Params p)
{
    static_cast<i32*>(p.y)[threadIdx.x] = p.dims[threadIdx.x];
}

} // namespace tw::ops::shape
