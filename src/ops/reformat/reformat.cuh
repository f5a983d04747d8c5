// SPDX-License-Identifier: Apache-2.0
//   type Element
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/reformat/reformat_params.h"

namespace tw::ops::reformat {

TW_INLINE i64 place(Params const& p, Div const& vector, i64 vectors, i64 image, i64 c, i64 pixel)
{
    i64 const v = divide(idx(c), vector);
    return ((image * vectors + v) * p.pixels + pixel) * vector.d + (c - v * vector.d);
}
// Squares of 32 channels by 32 pixels through shared memory; each side is walked along what it is dense in.
TW_KERNEL reformat(const __grid_constant__ Params p)
{
    __shared__ Element tile[32][33]; // [channel, pixel]
    idx const rest = divide(blockIdx.x, p.tilesP), image = divide(rest, p.tilesC);
    i64 const c0 = i64(rest - image * idx(p.tilesC.d)) * 32, p0 = i64(blockIdx.x - rest * idx(p.tilesP.d)) * 32;
    int const tx = threadIdx.x % 32, ty = threadIdx.x / 32;
#pragma unroll
    for (int r = ty; r < 32; r += 8) {
        int const c = p.xVector.d > 1 ? tx : r, pixel = p.xVector.d > 1 ? r : tx;
        if (c0 + c < p.channels && p0 + pixel < p.pixels)
            tile[c][pixel] =
                static_cast<Element const*>(p.x)[place(p, p.xVector, p.xVectors, image, c0 + c, p0 + pixel)];
    }
    __syncthreads();
#pragma unroll
    for (int r = ty; r < 32; r += 8) {
        int const c = p.yVector.d > 1 ? tx : r, pixel = p.yVector.d > 1 ? r : tx;
        if (c0 + c < p.yChannels && p0 + pixel < p.pixels)
            static_cast<Element*>(p.y)[place(p, p.yVector, p.yVectors, image, c0 + c, p0 + pixel)] =
                c0 + c < p.channels ? tile[c][pixel] : Element{};
    }
}
// Pixels of whole packs of 16 bytes, the same on both sides; what lies after the channels becomes zero. `pixels`
// counts packs, xVector those of a pixel.
TW_KERNEL copy_pixels(const __grid_constant__ Params p)
{
    constexpr int kPack = 16 / sizeof(Element);
    idx const i = threadIndex();
    if (i >= p.pixels)
        return;
    int const left = int(p.channels) - int(i - divide(i, p.xVector) * idx(p.xVector.d)) * kPack;
    Pack<Element, kPack> v = static_cast<Pack<Element, kPack> const*>(p.x)[i];
    if (left < kPack)
#pragma unroll
        for (int k = 0; k < kPack; ++k)
            if (k >= left)
                v.v[k] = Element{};
    static_cast<Pack<Element, kPack>*>(p.y)[i] = v;
}

} // namespace tw::ops::reformat
