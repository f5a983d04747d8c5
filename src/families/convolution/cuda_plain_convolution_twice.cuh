// SPDX-License-Identifier: Apache-2.0
// Two convolutions, the second with an end of its own.
// After cuda_plain_floats.cuh.
//   type T; float epilogue_2(float v, float r)
#pragma once

#include "families/convolution/cuda_plain_convolution.cuh"

namespace tw::ops {

struct SecondEnd
{
    static TW_INLINE float of(float v, float r) { return epilogue_2(v, r); }
};
TW_KERNEL convolve_direct_2(const __grid_constant__ PlainConvolutionParams p)
{
    convolveDirect<SecondEnd>(p);
}
TW_KERNEL convolve_tile_2(const __grid_constant__ PlainConvolutionParams p)
{
    convolveTile<SecondEnd>(p);
}

} // namespace tw::ops
