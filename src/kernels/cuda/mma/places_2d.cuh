// SPDX-License-Identifier: Apache-2.0
// Where rows and steps of k of a convolution over two axes lie: x is NHWC and k runs (r, s, c), or NCHW and (c, r, s).
//   types Element, Stride; int VECTOR; bool NCHW
#pragma once

#include "kernels/cuda/conv/mma_nd_params.h"
#include "kernels/cuda/mma/window_split.cuh"

namespace tw::cuda::product {

constexpr int THREADS = 256, BYTES = int(sizeof(Element)), STEP = 32;
using Args = conv_2d::ArgsOf<Element, Stride>;
struct Phase
{
    int const group = blockIdx.z;
    TW_INLINE explicit Phase(Args const&) {}
    TW_INLINE i64 offsetX(Args const& a) const { return i64(group) * a.groupX; }
};
// Where k stands.
struct Taps
{
    static constexpr int AT_ONCE = STEP; // of a thread's places, where each is copied alone
    int inner, middle, outer;
    TW_INLINE Taps(Args const& a, int k)
    {
        int const q = k / a.inner;
        inner = k - q * a.inner;
        outer = q / a.middle;
        middle = q - outer * a.middle;
    }
    TW_INLINE void move(Args const& a, int by)
    {
        inner += by;
        while (inner >= a.inner) {
            inner -= a.inner;
            if (++middle == a.middle) {
                middle = 0;
                ++outer;
            }
        }
    }
    TW_INLINE void next(Args const& a)
    {
        if (++inner < a.inner)
            return;
        inner = 0;
        if (++middle == a.middle) {
            middle = 0;
            ++outer;
        }
    }
};
// A pixel's first tap, which may lie outside.
struct Pixel
{
    i64 at;
    int h, w;
    TW_INLINE void set(Args const& a, Phase const&, int m)
    {
        int const row = divide(m, a.outW), image = divide(row, a.outH);
        h = (row - image * int(a.outH.d)) * a.strideH - a.padH;
        w = (m - row * int(a.outW.d)) * a.strideW - a.padW;
        at = i64(image) * a.imageX + i64(h) * a.rowX + i64(w) * a.columnX;
        if (m >= a.m)
            h = -(1 << 28); // zeros
    }
};
// How far a tap is from the first one.
struct Step
{
    i64 at;
    int h, w;
    bool known;
    TW_INLINE Step(Args const& a, Phase const&, Taps const& t)
    {
        h = (NCHW ? t.middle : t.outer) * a.dilationH;
        w = (NCHW ? t.inner : t.middle) * a.dilationW;
        at = i64(h) * a.rowX + (NCHW ? w + i64(t.outer) * a.channelX : i64(w) * a.columnX + t.inner);
        known = t.outer < a.outer;
    }
    TW_INLINE int bytesFor(Args const& a, Pixel const& p) const
    {
        return u32(p.h + h) < u32(a.h) && u32(p.w + w) < u32(a.w) && known ? VECTOR * BYTES : 0;
    }
};

} // namespace tw::cuda::product
