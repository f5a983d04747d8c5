// SPDX-License-Identifier: Apache-2.0
// What plain convolutions and transposed ones have in common.
#pragma once

#include "families/convolution/cuda_plain_convolution_params.h"
#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops {

// Coordinates of position i of [v0, v1, v2], the last running fastest.
TW_INLINE void split(Div const (&v)[3], idx i, off (&at)[3])
{
    idx const q = divide(i, v[2]), r = divide(q, v[1]);
    at[2] = off(i - q * idx(v[2].d));
    at[1] = off(q - r * idx(v[1].d));
    at[0] = off(r);
}

} // namespace tw::ops
