// SPDX-License-Identifier: Apache-2.0
// 16 bytes of channels a thread.
//   type T: f16, f32, and i8 where kIsNearest; bool kIsNearest, kExcludesOutside
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/resize/resize_coordinates.cuh"
#include "ops/resize/resize_params.h"
#include "ops/resize/resize_vectors.cuh"

namespace tw::ops::resize {

// Two elements and the second's weight.
struct Taps
{
    int first, second;
    float weight;
};
template <class N>
struct ScalesOf
{
    N over[2], under[2];
};
template <class N>
TW_INLINE Taps tapsOf(PixelParams const& p, int axis, N o, N out)
{
    ScalesOf<N> const scales = {{N(p.over[0]), N(p.over[1])}, {N(p.under[0]), N(p.under[1])}};
    N const in = N(p.in[axis]);
    N over, under;
    setCoordinate<N>(scales, axis, o, in, out, over, under);
    Taps t;
    if constexpr (kIsNearest) {
        N const c = rounded(over, under);
        t.first = t.second = int(c < 0 ? 0 : c >= in ? in - 1 : c);
        t.weight = 0;
    } else {
        N const base = floorDiv<N>(over, under);
        t.weight = float(double(over - base * under) / double(under));
        t.first = int(base < 0 ? 0 : base >= in ? in - 1 : base);
        t.second = int(base + 1 < 0 ? 0 : base + 1 >= in ? in - 1 : base + 1);
        // Beyond the ends an element counts as absent: the other one stands alone.
        if (kExcludesOutside) {
            if (base < 0)
                t.first = t.second;
            if (base + 1 >= in)
                t.second = t.first;
        }
        if (t.weight == 0)
            t.second = t.first; // an element of weight zero takes no part
    }
    return t;
}
TW_INLINE void unpack(Unit const& u, float (&v)[V])
{
#pragma unroll
    for (int i = 0; i < V; ++i)
        v[i] = valueOf(u, i);
}
TW_INLINE void mix(float (&a)[V], float const (&b)[V], float weight)
{
#pragma unroll
    for (int i = 0; i < V; ++i)
        a[i] = a[i] * (1.0f - weight) + b[i] * weight;
}
template <class N>
TW_INLINE void resizePixels(PixelParams const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const pixels = divide(i, p.vectors), rows = divide(pixels, p.wide), image = divide(rows, p.tall);
    i64 const c = i64(i - pixels * idx(p.vectors.d)) * V;
    Taps const h = tapsOf<N>(p, 0, N(rows - image * idx(p.tall.d)), N(p.tall.d));
    Taps const w = tapsOf<N>(p, 1, N(pixels - rows * idx(p.wide.d)), N(p.wide.d));
    T const* const x = static_cast<T const*>(p.x) + i64(image) * p.in[0] * p.in[1] * p.pixelX + c;
    Unit* const y = reinterpret_cast<Unit*>(static_cast<T*>(p.y) + i64(pixels) * p.pixelY + c);
    auto at = [&](int row, int column) {
        return *reinterpret_cast<Unit const*>(x + (i64(row) * p.in[1] + column) * p.pixelX);
    };
    if constexpr (kIsNearest) {
        *y = at(h.first, w.first);
    } else {
        Unit const raw[4] = {at(h.first, w.first), at(h.first, w.second), at(h.second, w.first),
                             at(h.second, w.second)};
        float top[V], bottom[V], other[V];
        unpack(raw[0], top);
        unpack(raw[2], bottom);
        if (w.second != w.first) {
            unpack(raw[1], other);
            mix(top, other, w.weight);
            unpack(raw[3], other);
            mix(bottom, other, w.weight);
        }
        if (h.second != h.first)
            mix(top, bottom, h.weight);
        Pack<T, V> out;
#pragma unroll
        for (int e = 0; e < V; ++e)
            out.v[e] = store<T>(top[e]);
        *reinterpret_cast<Pack<T, V>*>(y) = out;
    }
}
TW_KERNEL __launch_bounds__(256) resize(const __grid_constant__ PixelParams p)
{
    resizePixels<int>(p);
}
TW_KERNEL __launch_bounds__(256) resize_long(const __grid_constant__ PixelParams p)
{
    resizePixels<i64>(p);
}

} // namespace tw::ops::resize
