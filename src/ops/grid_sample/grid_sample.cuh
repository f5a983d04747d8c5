// SPDX-License-Identifier: Apache-2.0
// A point a thread: it looks for its pixels once and takes them from `each` channels.
//   type T, G: storage of x and y, of the grid   int kTaps: pixels along an axis   bool kAlignCorners
//   int kOutside: 2 clamp, 3 fill, 4 reflect
// Places are rounded after each operation as the op's header says: no step of theirs is contracted.
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/grid_sample/grid_sample_params.h"

namespace tw::ops::grid_sample {

TW_INLINE float clamped(float v, float last)
{
    return v > 0 ? fminf(v, last) : 0;
}

TW_INLINE float inside(float v, int size)
{
    float const last = float(size - 1);
    if constexpr (kOutside == 3)
        return v;
    if constexpr (kOutside == 2)
        return clamped(v, last);
    float const low = kAlignCorners ? 0.0f : -0.5f, span = kAlignCorners ? last : float(size);
    if (span == 0)
        return 0;
    float const from = fabsf(__fsub_rn(v, low)), rest = fmodf(from, span);
    bool const back = fmodf(floorf(__fdiv_rn(from, span)), 2.0f) != 0;
    return clamped(__fadd_rn(back ? __fsub_rn(span, rest) : rest, low), last);
}

TW_INLINE float weightOf(float distance)
{
    constexpr float c = -0.75f;
    float const d = fabsf(distance);
    if constexpr (kTaps == 1)
        return 1;
    if constexpr (kTaps == 2)
        return 1 - d;
    return d <= 1 ? ((c + 2) * d - (c + 3)) * d * d + 1 : ((c * d - 5 * c) * d + 8 * c) * d - 4 * c;
}

TW_INLINE void find(float g, int size, int (&at)[kTaps], float (&weight)[kTaps])
{
    float const moved = __fadd_rn(g, 1.0f);
    float place = kAlignCorners ? __fmul_rn(__fmul_rn(moved, 0.5f), float(size - 1))
                                : __fmul_rn(__fsub_rn(__fmul_rn(moved, float(size)), 1.0f), 0.5f);
    if constexpr (kTaps < 4)
        place = inside(place, size);
    float const first = kTaps == 1 ? rintf(place) : floorf(place) - (kTaps == 4 ? 1.0f : 0.0f);
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
        float const own = first + float(k), pixel = kTaps == 4 ? inside(own, size) : own;
        at[k] = pixel >= 0 && pixel <= float(size - 1) ? int(pixel) : -1;
        weight[k] = weightOf(__fsub_rn(place, own));
    }
}

TW_KERNEL grid_sample(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.all)
        return;
    idx const n = divide(i, p.points), point = i - n * idx(p.points.d);
    int across[kTaps], down[kTaps];
    float wx[kTaps], wy[kTaps];
    find(load<float>(static_cast<G const*>(p.grid)[2 * u64(i)]), p.w, across, wx);
    find(load<float>(static_cast<G const*>(p.grid)[2 * u64(i) + 1]), p.h, down, wy);
    u32 const first = blockIdx.y * p.each, end = min(first + p.each, p.channels);
    u64 const pixels = u64(p.h) * u64(p.w);
    T const* x = static_cast<T const*>(p.x) + (u64(n) * p.channels + first) * pixels;
    T* y = static_cast<T*>(p.y) + (u64(n) * p.channels + first) * p.points.d + point;
    for (u32 c = first; c < end; ++c, x += pixels, y += p.points.d) {
        float sum = 0;
#pragma unroll
        for (int r = 0; r < kTaps; ++r)
#pragma unroll
            for (int s = 0; s < kTaps; ++s)
                if (down[r] >= 0 && across[s] >= 0)
                    sum += wy[r] * wx[s] * load<float>(x[i64(down[r]) * p.w + across[s]]);
        *y = store<T>(sum);
    }
}

} // namespace tw::ops::grid_sample
