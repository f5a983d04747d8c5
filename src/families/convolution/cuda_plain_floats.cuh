// SPDX-License-Identifier: Apache-2.0
// What becomes of float sums of plain convolutions.
//   type T; float epilogue(float v, float r)
#pragma once

#include "families/convolution/cuda_plain_convolution_params.h"
#include "kernels/cuda/common/plain_floats.cuh"

namespace tw::ops {

template <class End>
TW_INLINE void finish(PlainConvolutionParams const& p, idx i, off k, float v)
{
    if (p.bias)
        v += load<float>(static_cast<T const*>(p.bias)[k]);
    float const r = p.residual ? load<float>(static_cast<T const*>(p.residual)[i]) : 0;
    static_cast<T*>(p.y)[i] = store<T>(End::of(v, r));
}
struct FirstEnd
{
    static TW_INLINE float of(float v, float r) { return epilogue(v, r); }
};

} // namespace tw::ops
