// SPDX-License-Identifier: Apache-2.0
// What a thread computes with in windows of linear images: cells of one column, as a float.
//   type T: an element in memory; bool AVERAGES: or the maximum is sought
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::pooling {

using Cell = float;
constexpr int PER = 1; // columns of a cell
// A word of elements that change no result.
constexpr u32 NOTHING = AVERAGES ? 0 : 0xFF800000u;
TW_INLINE Cell none()
{
    return __uint_as_float(NOTHING);
}
TW_INLINE Cell join(Cell a, Cell b)
{
    if constexpr (AVERAGES)
        return a + b;
    Cell v;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b)); // NaN wins
    return v;
}
// Column i * PER of words.
template <int N>
TW_INLINE Cell cellOf(u32 const (&words)[N], int i)
{
    if constexpr (sizeof(T) == 4)
        return __uint_as_float(words[i]);
    Narrow h;
    h.bits = u16(i % 2 ? words[i / 2] >> 16 : words[i / 2]);
    return halfToFloat(h);
}
// Columns a and b of cells.
template <int N>
TW_INLINE Cell pick(Cell const (&c)[N], int a, int)
{
    return c[a];
}
// A word of y.
TW_INLINE u32 wordOf(Cell low, Cell high)
{
    if constexpr (sizeof(T) == 4)
        return __float_as_uint(low);
    u32 pair;
    asm("cvt.rn." TW_NARROW_PTX "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
template <int N>
TW_INLINE void put(Pack<T, N>& y, int i, Cell v, float byH, float byW)
{
    y.v[i] = store<T>(AVERAGES ? v * byH * byW : v);
}

} // namespace tw::ops::pooling
