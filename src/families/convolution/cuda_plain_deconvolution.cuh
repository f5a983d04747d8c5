// SPDX-License-Identifier: Apache-2.0
// A thread for each element of y.
// After cuda_plain_floats.cuh or cuda_plain_integers.cuh.
//   type T, of x and w
#pragma once

#include "families/convolution/cuda_plain_window.cuh"

namespace tw::ops {

// The input that window position f brings to output o, or -1.
TW_INLINE off source(PlainConvolutionParams const& p, int axis, off o, off f)
{
    off const scaled = o + off(p.before[axis]) - f * off(p.dilation[axis]), s = off(p.stride[axis]);
    return scaled < 0 || scaled % s != 0 || scaled / s >= off(p.in[axis]) ? -1 : scaled / s;
}
TW_KERNEL deconvolve(const __grid_constant__ PlainConvolutionParams p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const plane = idx(p.out[0].d * p.out[1].d * p.out[2].d);
    idx const q = i / plane, n = divide(q, p.channels);
    off const k = off(q - n * idx(p.channels.d));
    off o[3];
    split(p.out, i - q * plane, o);
    idx const group = divide(idx(k), p.groupK);
    off const groupK = off(p.groupK.d), kg = k - off(group) * groupK;
    off const f0n = off(p.window[0].d), f1n = off(p.window[1].d), f2n = off(p.window[2].d);
    i64 const inPlane = p.in[0] * p.in[1] * p.in[2], window = i64(f0n) * f1n * f2n;
    T const* const x = static_cast<T const*>(p.x) + (i64(n) * p.c + i64(group) * p.groupC) * inPlane;
    T const* const w = static_cast<T const*>(p.w) + (i64(group) * p.groupC * groupK + kg) * window;
    Sum sum = 0;
    for (off f0 = 0; f0 < f0n; ++f0) {
        off const i0 = source(p, 0, o[0], f0);
        for (off f1 = 0; f1 < f1n && i0 >= 0; ++f1) {
            off const i1 = source(p, 1, o[1], f1);
            for (off f2 = 0; f2 < f2n && i1 >= 0; ++f2) {
                off const i2 = source(p, 2, o[2], f2);
                if (i2 < 0)
                    continue;
                T const* xc = x + (i0 * off(p.in[1]) + i1) * off(p.in[2]) + i2;
                T const* wc = w + (f0 * f1n + f1) * f2n + f2;
                for (i64 c = 0; c < p.groupC; ++c, xc += inPlane, wc += i64(groupK) * window)
                    sum += load<Sum>(*xc) * load<Sum>(*wc);
            }
        }
    }
    finish<FirstEnd>(p, i, k, sum);
}

} // namespace tw::ops
