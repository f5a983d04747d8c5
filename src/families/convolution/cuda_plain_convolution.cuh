// SPDX-License-Identifier: Apache-2.0
// After cuda_plain_floats.cuh or cuda_plain_integers.cuh.
//   type T, of x and w
#pragma once

#include "families/convolution/cuda_plain_window.cuh"

namespace tw::ops {

// A thread for each element. (Parameters go by value to both, or their kernels become other machine code.)
template <class Activation>
TW_INLINE void convolveDirect(PlainConvolutionParams const p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const plane = idx(p.out[0].d * p.out[1].d * p.out[2].d);
    idx const q = i / plane, n = divide(q, p.channels);
    off const k = off(q - n * idx(p.channels.d));
    off o[3];
    split(p.out, i - q * plane, o);
    off const c0 = off(divide(idx(k), p.groupK)) * off(p.groupC);
    off const f0n = off(p.window[0].d), f1n = off(p.window[1].d), f2n = off(p.window[2].d);
    T const* w = static_cast<T const*>(p.w) + i64(k) * p.groupC * f0n * f1n * f2n;
    T const* x = static_cast<T const*>(p.x) + (i64(n) * p.c + c0) * p.in[0] * p.in[1] * p.in[2];
    Sum sum = 0;
    for (i64 c = 0; c < p.groupC; ++c) {
        for (off f0 = 0; f0 < f0n; ++f0) {
            off const i0 = o[0] * off(p.stride[0]) - off(p.before[0]) + f0 * off(p.dilation[0]);
            for (off f1 = 0; f1 < f1n; ++f1) {
                off const i1 = o[1] * off(p.stride[1]) - off(p.before[1]) + f1 * off(p.dilation[1]);
                for (off f2 = 0; f2 < f2n; ++f2, ++w) {
                    off const i2 = o[2] * off(p.stride[2]) - off(p.before[2]) + f2 * off(p.dilation[2]);
                    if (i0 >= 0 && i0 < off(p.in[0]) && i1 >= 0 && i1 < off(p.in[1]) && i2 >= 0 && i2 < off(p.in[2]))
                        sum += load<Sum>(*w) * load<Sum>(x[(i0 * off(p.in[1]) + i1) * off(p.in[2]) + i2]);
                }
            }
        }
        x += p.in[0] * p.in[1] * p.in[2];
    }
    finish<Activation>(p, i, k, sum);
}
// An implicit matrix product in tiles of 64 channels by 64 positions.
template <class Activation>
TW_INLINE void convolveTile(PlainConvolutionParams const p)
{
    constexpr off STEP = 16 * kFactors;
    __shared__ Factors ws[16][68]; // [reduced, k]
    __shared__ Factors xs[16][68]; // [reduced, position]
    idx const rest = divide(blockIdx.x, p.tilesP), group = divide(rest, p.tilesK);
    off const k0 = off(rest - group * idx(p.tilesK.d)) * 64;
    idx const p0 = (blockIdx.x - rest * idx(p.tilesP.d)) * 64;
    off const groupK = off(p.groupK.d), groupC = off(p.groupC);
    off const window = off(p.window[0].d * p.window[1].d * p.window[2].d), reduced = groupC * window;
    i64 const inPlane = p.in[0] * p.in[1] * p.in[2];
    idx const plane = idx(p.out[0].d * p.out[1].d * p.out[2].d);
    int const t = threadIdx.x;
    // Of x this thread brings one position, at 4 of the 16 places to reduce over; of w one place at 4 channels.
    idx const position = p0 + t % 64;
    bool const isPosition = position < idx(p.positions);
    idx const n = position / plane;
    off base[3];
    split(p.out, position - n * plane, base);
#pragma unroll
    for (int a = 0; a < 3; ++a)
        base[a] = base[a] * off(p.stride[a]) - off(p.before[a]);
    T const* const x = static_cast<T const*>(p.x) + (i64(n) * p.c + i64(group) * groupC) * inPlane;
    T const* const w = static_cast<T const*>(p.w) + i64(group) * groupK * reduced;
    int const ty = t / 16 * 4, tx = t % 16 * 4;
    Sum sum[4][4] = {};
    for (off r0 = 0; r0 < reduced; r0 += STEP) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            int const wr = t % 16, wk = t / 16 + 16 * q;
            ws[wr][wk] = gather([&](int i) {
                off const r = r0 + wr * kFactors + i;
                return k0 + wk < groupK && r < reduced ? load<Sum>(w[i64(k0 + wk) * reduced + r]) : Sum(0);
            });
            int const xr = t / 64 + 4 * q;
            xs[xr][t % 64] = gather([&](int i) {
                idx const r = idx(r0 + xr * kFactors + i);
                if (!isPosition || r >= idx(reduced))
                    return Sum(0);
                idx const f12 = divide(r, p.window[2]), f012 = divide(f12, p.window[1]);
                idx const c = divide(f012, p.window[0]);
                off const i2 = base[2] + off(r - f12 * idx(p.window[2].d)) * off(p.dilation[2]);
                off const i1 = base[1] + off(f12 - f012 * idx(p.window[1].d)) * off(p.dilation[1]);
                off const i0 = base[0] + off(f012 - c * idx(p.window[0].d)) * off(p.dilation[0]);
                bool const isInside =
                    i0 >= 0 && i0 < off(p.in[0]) && i1 >= 0 && i1 < off(p.in[1]) && i2 >= 0 && i2 < off(p.in[2]);
                return isInside ? load<Sum>(x[i64(c) * inPlane + (i0 * off(p.in[1]) + i1) * off(p.in[2]) + i2])
                                : Sum(0);
            });
        }
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 16; ++q) {
            Factors va[4], vb[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                va[i] = ws[q][ty + i];
                vb[i] = xs[q][tx + i];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    accumulate(sum[i][j], va[i], vb[j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        idx const at = p0 + tx + j;
        if (at >= idx(p.positions))
            continue;
        idx const image = at / plane;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            off const kg = k0 + ty + i;
            if (kg >= groupK)
                continue;
            off const k = off(group) * groupK + kg;
            finish<Activation>(p, (image * idx(p.k) + idx(k)) * plane + (at - image * plane), k, sum[i][j]);
        }
    }
}
TW_KERNEL convolve_direct(const __grid_constant__ PlainConvolutionParams p)
{
    convolveDirect<FirstEnd>(p);
}
TW_KERNEL convolve_tile(const __grid_constant__ PlainConvolutionParams p)
{
    convolveTile<FirstEnd>(p);
}

} // namespace tw::ops
