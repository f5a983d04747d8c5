// SPDX-License-Identifier: Apache-2.0
// What a thread computes with in windows of linear images: cells of two columns of FP16 whose maximum is sought.
//   type T: an element in memory; bool AVERAGES: false
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::pooling {

using Cell = u32;
constexpr int PER = 2; // columns of a cell
// A word of elements that change no result.
constexpr u32 NOTHING = lowestPair(Narrow{});
TW_INLINE Cell none()
{
    return NOTHING;
}
TW_INLINE Cell join(Cell a, Cell b) // of each half; NaN wins
{
    u32 v;
    asm("max.NaN." TW_NARROW_PTX "x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    return v;
}
// Column i * PER of words.
template <int N>
TW_INLINE Cell cellOf(u32 const (&words)[N], int i)
{
    return words[i];
}
// Columns a and b of cells.
template <int N>
TW_INLINE Cell pick(Cell const (&c)[N], int a, int b)
{
    return __byte_perm(c[a / 2], c[b / 2], (a % 2 ? 0x32u : 0x10u) | (b % 2 ? 0x7600u : 0x5400u));
}
// A word of y.
TW_INLINE u32 wordOf(Cell v, Cell)
{
    return v;
}
template <int N>
TW_INLINE void put(Pack<T, N>& y, int i, Cell v, float, float)
{
    y.v[i].bits = u16(v);
    y.v[i + 1].bits = u16(v >> 16);
}

} // namespace tw::ops::pooling
