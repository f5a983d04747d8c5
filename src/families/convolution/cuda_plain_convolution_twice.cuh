// SPDX-License-Identifier: Apache-2.0
// Two convolutions, the second with an activation of its own.
// After cuda_plain_floats.cuh.
//   type T; float activate_2(float)
#pragma once

#include "families/convolution/cuda_plain_convolution.cuh"

namespace tw::ops {

struct Activate2
{
    static TW_INLINE float of(float v) { return activate_2(v); }
};
TW_KERNEL convolve_direct_2(const __grid_constant__ PlainConvolutionParams p)
{
    convolveDirect<Activate2>(p);
}
TW_KERNEL convolve_tile_2(const __grid_constant__ PlainConvolutionParams p)
{
    convolveTile<Activate2>(p);
}

} // namespace tw::ops
