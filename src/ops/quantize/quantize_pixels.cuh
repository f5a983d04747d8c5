// SPDX-License-Identifier: Apache-2.0
// From planes to pixels: a thread has 16 channels of a pixel, its neighbours have the next pixels. What lies after the last
// channel becomes 0.
//   type T: f16, f32
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "kernels/cuda/common/steps.cuh"
#include "ops/quantize/quantize_pixels_params.h"

namespace tw::ops::quantize {

TW_KERNEL quantize_pixels(const __grid_constant__ PixelsParams p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const q = divide(i, p.pixels), image = divide(q, p.groups);
    i64 const pixel = i - q * idx(p.pixels.d), pixels = i64(p.pixels.d);
    int const c0 = int(q - image * idx(p.groups.d)) * 16, left = int(p.channels) - c0;
    T const* const x = static_cast<T const*>(p.x) + i64(image) * p.planes + c0 * pixels + pixel;
    Pack<i8, 16> y;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        y.v[k] = 0;
        if (k < left)
            y.v[k] = store<i8>(Steps(__ldg(p.scale + (c0 + k) * p.scaleStep))(load<float>(x[k * pixels])));
    }
    *reinterpret_cast<Pack<i8, 16>*>(static_cast<i8*>(p.y) + (i64(image) * pixels + pixel) * p.pixelY + c0) = y;
}

} // namespace tw::ops::quantize
