// SPDX-License-Identifier: Apache-2.0
// Inputs one by one, or packs of y pieced together.
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/concatenation/concatenation_params.h"

namespace tw::ops::concatenation {

template <class U>
TW_INLINE void copyRows(RowParams const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const r = divide(i, p.row);
    off const at = off(i - r * idx(p.row.d));
    static_cast<U*>(p.y)[off(r) * off(p.yRow) + off(p.yBegin) + at] =
        static_cast<U const*>(p.x)[off(r) * off(p.xRow) + at];
}
// Rows that begin anywhere: aligned stores of 8 bytes, units at the ends of rows. p.row: stores of a row.
template <class U>
TW_INLINE void copyOddRows(RowParams const& p)
{
    constexpr int kPerStore = 8 / sizeof(U);
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const r = divide(i, p.row);
    U const* const x = static_cast<U const*>(p.x) + off(r) * off(p.xRow);
    U* const y = static_cast<U*>(p.y) + off(r) * off(p.yRow) + off(p.yBegin);
    off const at = off(i - r * idx(p.row.d)) * kPerStore - off(reinterpret_cast<u64>(y) / sizeof(U) % kPerStore),
              length = off(p.length);
    if (at >= 0 && at + kPerStore <= length) {
        Pack<U, kPerStore> v;
#pragma unroll
        for (int e = 0; e < kPerStore; ++e)
            v.v[e] = x[at + e];
        *reinterpret_cast<Pack<U, kPerStore>*>(y + at) = v;
    } else {
#pragma unroll
        for (int e = 0; e < kPerStore; ++e)
            if (at + e >= 0 && at + e < length)
                y[at + e] = x[at + e];
    }
}

// 16 bytes of y for a thread. After the last input, in the gap of a pixel: zeros.
template <class U>
TW_INLINE void copyWhole(WholeParams const& p)
{
    constexpr int kPerStore = 16 / sizeof(U);
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex() * kPerStore;
    if (i >= p.count)
        return;
    int const inputs = int(p.inputs);
    idx row = divide(i, p.columns);
    off const columns = off(p.columns.d);
    off column = off(i - row * idx(p.columns.d)), end = 0;
    int k = 0;
    U const* x = nullptr;
    auto enter = [&] {     // the input that the column belongs to
        int last = inputs; // it is one of [k, last]
        for (k = 0; k < last;) {
            int const middle = (k + last) / 2;
            if (column >= off(p.end[middle]))
                k = middle + 1;
            else
                last = middle;
        }
        end = k < inputs ? off(p.end[k]) : columns;
        if (k < inputs)
            x = static_cast<U const*>(p.x[k]) + off(row) * off(p.step[k]) + (column - (k > 0 ? off(p.end[k - 1]) : 0));
    };
    enter();
    Pack<U, kPerStore> v;
#pragma unroll
    for (int e = 0; e < kPerStore; ++e) {
        if (column == end) {
            if (column == columns)
                column = 0, ++row;
            if (i + e < p.count)
                enter();
        }
        v.v[e] = U{};
        if (i + e < p.count && k < inputs)
            v.v[e] = *x++;
        ++column;
    }
    U* const y = static_cast<U*>(p.y) + i;
    if (i + kPerStore <= p.count)
        *reinterpret_cast<Pack<U, kPerStore>*>(y) = v;
    else
#pragma unroll
        for (int e = 0; e < kPerStore; ++e)
            if (i + e < p.count)
                y[e] = v.v[e];
}

} // namespace tw::ops::concatenation
