// SPDX-License-Identifier: Apache-2.0
// A thread makes a piece of some rows of y, one below the other.
//   type T, Value: what is computed with; int kRows of y, for a thread, kWide: elements of such a row
//   bool kNhwc: they are channels of one pixel, else columns; bool kIsBetween: rows are those between kSpans + 1 of x
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/resize/resize_params.h"
#include "ops/resize/resize_scale.cuh"

namespace tw::ops::resize {

typedef Pack<T, kWide> Unit;
constexpr int kColumns = kNhwc ? 1 : kWide;
TW_INLINE float mixed(float a, float b, float weight)
{
    return a * (1.0f - weight) + b * weight;
}
struct Raw
{
    T first[kWide], second[kWide];
};
TW_INLINE void fetch(T const* row, int const (&first)[kColumns], int const (&second)[kColumns], Raw& raw)
{
    if constexpr (kNhwc) {
        *reinterpret_cast<Unit*>(raw.first) = *reinterpret_cast<Unit const*>(row + first[0]);
        if constexpr (!kIsNearest)
            *reinterpret_cast<Unit*>(raw.second) = *reinterpret_cast<Unit const*>(row + second[0]);
    } else {
#pragma unroll
        for (int c = 0; c < kWide; ++c)
            raw.first[c] = row[first[c]];
        if constexpr (!kIsNearest)
#pragma unroll
            for (int c = 0; c < kWide; ++c)
                raw.second[c] = row[second[c]];
    }
}
template <class Of>
TW_INLINE void settle(Raw const& raw, int const (&first)[kColumns], int const (&second)[kColumns],
                      float const (&weight)[kColumns], Of (&v)[kWide])
{
#pragma unroll
    for (int c = 0; c < kWide; ++c) {
        if constexpr (kIsNearest) {
            v[c] = raw.first[c];
        } else {
            int const k = kNhwc ? 0 : c;
            float const a = load<float>(raw.first[c]), b = load<float>(raw.second[c]);
            v[c] = first[k] == second[k] ? a : mixed(a, b, weight[k]);
        }
    }
}
template <class Of>
TW_INLINE T valueOf(Of a, Of b, Taps const& h)
{
    if constexpr (kIsNearest)
        return a;
    else
        return store<T>(h.first == h.second ? a : mixed(a, b, h.weight));
}
struct Spot
{
    T const* x;
    T* y;
    int group, column;
    int first[kColumns], second[kColumns];
    float weight[kColumns];
};
template <class N>
TW_INLINE Spot spotOf(RowParams const& p, idx i)
{
    idx const rest = divide(i, p.inner), image = divide(rest, p.groups);
    int const at = int(i - rest * idx(p.inner.d)), wide = int(p.scale[1].out);
    int const column = kNhwc ? int(divide(at, p.vectors)) : at * kWide,
              channel = kNhwc ? (at - column * int(p.vectors.d)) * kWide : 0;
    Spot s;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
        Taps const w = tapsOf<N>(p.scale[1], column + c < wide ? column + c : wide - 1);
        s.first[c] = kNhwc ? w.first * int(p.xPixel) + channel : w.first;
        s.second[c] = kNhwc ? w.second * int(p.xPixel) + channel : w.second;
        s.weight[c] = w.weight;
    }
    s.group = int(rest - image * idx(p.groups.d));
    s.column = column;
    s.x = static_cast<T const*>(p.x) + i64(image) * p.xImage;
    s.y = static_cast<T*>(p.y) + i64(image) * p.yImage + (kNhwc ? column * p.yPixel + channel : column);
    return s;
}
TW_INLINE void put(T* y, int left, Unit const& out) // left: columns of the row
{
    if (kNhwc || (kWide <= left && reinterpret_cast<u64>(y) % sizeof(Unit) == 0)) {
        *reinterpret_cast<Unit*>(y) = out;
    } else {
#pragma unroll
        for (int c = 0; c < kWide; ++c)
            if (c < left)
                y[c] = out.v[c];
    }
}
template <class N>
TW_INLINE void resizeRows(RowParams const& p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    Spot const s = spotOf<N>(p, i);
    int const row0 = s.group * kRows, tall = int(p.scale[0].out), left = int(p.scale[1].out) - s.column;
    T* y = s.y + row0 * p.yRow;
    waitForPrevious();
    releaseDependents();
    int have0 = -1, have1 = -1; // rows of x
    Value v0[kWide], v1[kWide];
#pragma unroll
    for (int r = 0; r < kRows; ++r, y += p.yRow) {
        if (row0 + r >= tall)
            break;
        Taps const h = tapsOf<N>(p.scale[0], row0 + r);
        bool want0 = h.first != have0, want1 = !kIsNearest && h.second != h.first && h.second != have1;
        if (want0 && h.first == have1) {
#pragma unroll
            for (int c = 0; c < kWide; ++c)
                v0[c] = v1[c];
            want0 = false;
        }
        Raw raw0, raw1;
        if (want0)
            fetch(s.x + h.first * p.xRow, s.first, s.second, raw0);
        if (want1)
            fetch(s.x + h.second * p.xRow, s.first, s.second, raw1);
        if (want0)
            settle(raw0, s.first, s.second, s.weight, v0);
        if (want1)
            settle(raw1, s.first, s.second, s.weight, v1), have1 = h.second;
        have0 = h.first;
        Unit out;
#pragma unroll
        for (int c = 0; c < kWide; ++c)
            out.v[c] = valueOf(v0[c], v1[c], h);
        put(y, left, out);
    }
}
// Rows of y that lie between a few neighbours of x, which are all read first.
template <class N>
TW_INLINE void resizeBetween(RowParams const& p)
{
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    Spot const s = spotOf<N>(p, i);
    Scale const& rows = p.scale[0];
    int const from = s.group * kSpans - 1, last = int(rows.in) - 1, tall = int(rows.out),
              left = int(p.scale[1].out) - s.column; // from: the row before, -1 for what lies outside
    N const times = N(rows.times), plus = N(rows.plus), by = N(rows.by.d), need = N(from + 1) * by;
    int o = need <= plus ? 0 : times == 0 ? tall : int(quotient(N(need - plus + times - 1), rows.step));
    waitForPrevious();
    releaseDependents();
    if (o >= tall)
        return;
    Raw raw[kSpans + 1];
    Value v[kSpans + 1][kWide];
#pragma unroll
    for (int k = 0; k <= kSpans; ++k) {
        int const row = from + k < 0 ? 0 : from + k > last ? last : from + k;
        fetch(s.x + row * p.xRow, s.first, s.second, raw[k]);
    }
#pragma unroll
    for (int k = 0; k <= kSpans; ++k)
        settle(raw[k], s.first, s.second, s.weight, v[k]);
    T* y = s.y + o * p.yRow;
#pragma unroll
    for (int k = 0; k < kSpans; ++k)
        for (; o < tall; ++o, y += p.yRow) {
            N const n = N(o) * times + plus, q = quotient(n, rows.by);
            int const base = int(q) - 1 > last ? last : int(q) - 1;
            if (base != from + k)
                break;
            N const rest = n - q * by;
            Taps h = {0, 1, float(rest) * rows.inverse};
            if (base == last || rest == 0)
                h.second = 0;
            Unit out;
#pragma unroll
            for (int c = 0; c < kWide; ++c)
                out.v[c] = base < 0 ? store<T>(v[k + 1][c]) : valueOf(v[k][c], v[k + 1][c], h);
            put(y, left, out);
        }
}
template <class N>
TW_INLINE void resize(RowParams const& p)
{
    if constexpr (kIsBetween)
        resizeBetween<N>(p);
    else
        resizeRows<N>(p);
}
TW_KERNEL_OF(__launch_bounds__(256) resize_rows, RowParams, resize<u32>)
TW_KERNEL_OF(__launch_bounds__(256) resize_rows_long, RowParams, resize<u64>)

} // namespace tw::ops::resize
