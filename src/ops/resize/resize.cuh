// SPDX-License-Identifier: Apache-2.0
// Coordinates are exact fractions, weights doubles: plain. Only the last three axes mix elements.
//   type T; float kCubic; bool kIsNearest, kIsCubic, kExcludesOutside
//   bool kIsAlignCorners, kIsAsymmetric: neither, half pixels; bool kIsZeroWhenOne: an axis of one element takes the first
//   bool kRoundsHalfUp, kRoundsHalfDown, kRoundsDown: of these none, up
//   bool kIsRounded: to 2^-20 first, so that the order of the sum does not decide at a half
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

TW_INLINE i64 floorDiv(i64 a, i64 b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
TW_INLINE i64 ceilDiv(i64 a, i64 b)
{
    return -floorDiv(-a, b);
}
// Element o of `out`, made from `in` elements, stands at over / under.
TW_INLINE void setCoordinate(Params const& p, int axis, i64 o, i64 in, i64 out, i64& over, i64& under)
{
    if (out == 1 && kIsZeroWhenOne) {
        over = 0;
        under = 1;
    } else if constexpr (kIsAlignCorners) {
        over = o * (in - 1);
        under = out - 1;
    } else if constexpr (kIsAsymmetric) {
        over = o * p.under[axis];
        under = p.over[axis];
    } else {
        over = (2 * o + 1) * p.under[axis] - p.over[axis];
        under = 2 * p.over[axis];
    }
}
TW_INLINE i64 rounded(i64 over, i64 under)
{
    if constexpr (kRoundsHalfUp)
        return floorDiv(2 * over + under, 2 * under);
    else if constexpr (kRoundsHalfDown)
        return ceilDiv(2 * over - under, 2 * under);
    else if constexpr (kRoundsDown)
        return floorDiv(over, under);
    else
        return ceilDiv(over, under);
}
struct Taps
{
    int count;
    i64 index[4];
    double weight[4];
};
TW_INLINE double cubicWeight(double distance)
{
    double const a = kCubic, x = fabs(distance);
    if (x == 1)
        return 0;
    if (x < 1)
        return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    if (x < 2)
        return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
    return 0;
}
TW_INLINE Taps tapsOf(Params const& p, int axis, i64 o)
{
    i64 const in = p.in[axis], out = i64(p.dim[axis].d);
    i64 over, under;
    setCoordinate(p, axis, o, in, out, over, under);
    Taps taps;
    taps.count = 0;
    if constexpr (kIsNearest) {
        i64 const c = rounded(over, under);
        taps.index[0] = c < 0 ? 0 : c >= in ? in - 1 : c;
        taps.weight[0] = 1;
        taps.count = 1;
    } else {
        i64 const base = floorDiv(over, under);
        double const rest = double(over - base * under) / double(under);
        double sum = 0;
        for (int k = kIsCubic ? -1 : 0; k <= (kIsCubic ? 2 : 1); ++k) {
            i64 const i = base + k;
            bool const outside = i < 0 || i >= in;
            double const w = kIsCubic ? cubicWeight(rest - k) : k == 0 ? 1 - rest : rest;
            if (kExcludesOutside && outside)
                continue;
            sum += w;
            if (w == 0)
                continue;
            taps.index[taps.count] = i < 0 ? 0 : i >= in ? in - 1 : i;
            taps.weight[taps.count++] = w;
        }
        if (kExcludesOutside)
            for (int k = 0; k < taps.count; ++k)
                taps.weight[k] /= sum;
    }
    return taps;
}
TW_KERNEL resize(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx rest = i;
    off base = 0;
    Taps taps[3];
#pragma unroll
    for (int r = 7; r >= 0; --r) {
        idx const q = divide(rest, p.dim[r]);
        Taps const t = tapsOf(p, r, i64(rest - q * idx(p.dim[r].d)));
        if (r >= 5)
            taps[r - 5] = t;
        else
            base += off(t.index[0] * p.stride[r]);
        rest = q;
    }
    T const* const x = static_cast<T const*>(p.x) + base;
    double v = 0;
    for (int a = 0; a < taps[0].count; ++a) {
        double va = 0;
        for (int b = 0; b < taps[1].count; ++b) {
            double vb = 0;
            for (int c = 0; c < taps[2].count; ++c)
                vb +=
                    taps[2].weight[c] * load<double>(x[taps[0].index[a] * p.stride[5] + taps[1].index[b] * p.stride[6] +
                                                       taps[2].index[c] * p.stride[7]]);
            va += taps[1].weight[b] * vb;
        }
        v += taps[0].weight[a] * va;
    }
    if constexpr (kIsRounded)
        v = rint(v * 1048576.0) / 1048576.0;
    static_cast<T*>(p.y)[i] = store<T>(v);
}

} // namespace tw::ops::resize
