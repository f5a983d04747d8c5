// SPDX-License-Identifier: Apache-2.0
// What plain convolutions and transposed ones have in common.
// After activate().
//   type T
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

template <class Activation>
TW_INLINE void finish(PlainConvolutionParams const& p, idx i, off k, float v)
{
    if (p.bias)
        v += load<float>(static_cast<T const*>(p.bias)[k]);
    if (p.residual)
        v += load<float>(static_cast<T const*>(p.residual)[i]);
    static_cast<T*>(p.y)[i] = store<T>(Activation::of(v));
}
struct Activate
{
    static TW_INLINE float of(float v) { return activate(v); }
};

} // namespace tw::ops
