// SPDX-License-Identifier: Apache-2.0
// Where rows and steps of k of a convolution over up to three axes lie, of transposed ones phase by phase.
//   type Element; int TILE_M, TILE_N, VECTOR
#pragma once

#include "kernels/cuda/conv/mma_nd_params.h"
#include "kernels/cuda/mma/window_split.cuh"

namespace tw::cuda::product {

constexpr int THREADS = 256, BYTES = int(sizeof(Element)), STEP = BYTES == 1 ? conv_nd::kIntegerStepK : conv_nd::kStepK;
template <class E>
struct ArgsFor
{
    using Type = conv_nd::ArgsOf<E>;
};
template <>
struct ArgsFor<i8>
{
    using Type = conv_nd::IntegerArgsOf<i8>;
};
using Args = ArgsFor<Element>::Type;
// The phase of a block, and how many taps it has along each axis.
struct Phase
{
    int group, d, h, w, tapsD, tapsH, tapsW;
    TW_INLINE explicit Phase(Args const& a)
    {
        int const phase = blockIdx.z / a.groups;
        group = blockIdx.z - phase * a.groups;
        int const q = phase / a.axes[2].phases;
        w = phase - q * a.axes[2].phases;
        d = q / a.axes[1].phases;
        h = q - d * a.axes[1].phases;
        tapsD = a.axes[0].count[d];
        tapsH = a.axes[1].count[h];
        tapsW = a.axes[2].count[w];
    }
    TW_INLINE i64 offsetX(Args const& a) const { return i64(group) * a.channels; }
};
// Where k stands.
struct Taps
{
    static constexpr int AT_ONCE = 4; // of a thread's places, where each is copied alone: short code
    int inner, d, h, w;
    TW_INLINE Taps(Args const& a, int k)
    {
        int q = k / a.inner;
        inner = k - q * a.inner;
        int const row = q / a.axes[2].taps;
        w = q - row * a.axes[2].taps;
        d = row / a.axes[1].taps;
        h = row - d * a.axes[1].taps;
    }
    TW_INLINE void move(Args const& a, int by)
    {
        inner += by;
        while (inner >= a.inner) {
            inner -= a.inner;
            if (++w < a.axes[2].taps)
                continue;
            w = 0;
            if (++h < a.axes[1].taps)
                continue;
            h = 0;
            ++d;
        }
    }
    TW_INLINE void next(Args const& a) { move(a, 1); }
};
// A row as an image and a position along each axis.
struct Position
{
    int image, d, h, w;
    TW_INLINE Position(Args const& a, int m)
    {
        int const row = divide(m, a.positions[2]), plane = divide(row, a.positions[1]);
        w = m - row * int(a.positions[2].d);
        h = row - plane * int(a.positions[1].d);
        image = divide(plane, a.positions[0]);
        d = plane - image * int(a.positions[0].d);
    }
};
// A position's first tap, which may lie outside.
struct Pixel
{
    i64 at;
    int d, h, w;
    TW_INLINE void set(Args const& a, Phase const& p, int m)
    {
        Position const q(a, m);
        d = q.d * a.axes[0].stride + a.axes[0].begin[p.d];
        h = q.h * a.axes[1].stride + a.axes[1].begin[p.h];
        w = q.w * a.axes[2].stride + a.axes[2].begin[p.w];
        at = i64(q.image) * a.imageX + i64(d) * a.planeX + i64(h) * a.rowX + i64(w) * a.pixelX;
        if (m >= a.m)
            d = -(1 << 28); // zeros
    }
};
// How far a tap is from the first one.
struct Step
{
    i64 at;
    int d, h, w, bytes;
    TW_INLINE Step(Args const& a, Phase const& p, Taps const& t)
    {
        d = t.d * a.axes[0].step;
        h = t.h * a.axes[1].step;
        w = t.w * a.axes[2].step;
        at = i64(d) * a.planeX + i64(h) * a.rowX + i64(w) * a.pixelX + t.inner;
        bytes = t.d < p.tapsD && t.h < p.tapsH && t.w < p.tapsW ? min(VECTOR, a.channels - t.inner) * BYTES : 0;
    }
    TW_INLINE int bytesFor(Args const& a, Pixel const& p) const
    {
        bool const inside =
            u32(p.d + d) < u32(a.axes[0].in) && u32(p.h + h) < u32(a.axes[1].in) && u32(p.w + w) < u32(a.axes[2].in);
        return inside ? bytes : 0;
    }
};

} // namespace tw::cuda::product
