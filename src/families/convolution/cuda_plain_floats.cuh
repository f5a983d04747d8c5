// SPDX-License-Identifier: Apache-2.0
// What becomes of float sums of plain convolutions.
//   type T; float activate(float)
#pragma once

#include "families/convolution/cuda_plain_convolution_params.h"
#include "kernels/cuda/common/plain_floats.cuh"

namespace tw::ops {

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
