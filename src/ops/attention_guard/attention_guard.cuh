// SPDX-License-Identifier: Apache-2.0
// An element of y for each thread, by its bits; a thread whose element is NaN reads a column of v.
//   bool kRowsFirst; unsigned kExponent, kNan: bits of a number that is not finite, and of a NaN
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/attention_guard/attention_guard_params.h"

namespace tw::ops::attention_guard {

template <class U>
TW_INLINE bool isBroken(Params const& p, idx image, idx column)
{
    constexpr i64 kRows = 16;
    if (!p.v)
        return false;
    idx const head = divide(column, p.size);
    U const* const v = static_cast<U const*>(p.v) + p.offset + i64(divide(head, p.perKey)) * p.headStride +
                       i64(column - head * idx(p.size.d));
    i64 keys = p.columns;
    if (p.lengths) {
        i64 const length = p.lengths[image];
        keys = length < 0 ? 0 : length < keys ? length : keys;
    }
    for (i64 j = 0; j < keys; ++j) {
        i64 block = i64(image), row = j;
        if (p.pages) {
            block = p.pages[i64(image) * p.pageCount + j / kRows];
            block = block < 0 ? 0 : block < p.blocks ? block : p.blocks - 1;
            row = j % kRows;
        }
        if ((v[block * p.batchStride + row * p.rowStride] & U(kExponent)) == U(kExponent))
            return true;
    }
    return false;
}
template <class U>
TW_INLINE void guard(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    U y = static_cast<U const*>(p.y)[i];
    if ((y & (kExponent | (kExponent - 1))) > kExponent) {
        idx const row = divide(i, p.width), column = i - row * idx(p.width.d), by = divide(row, p.images);
        y = isBroken<U>(p, kRowsFirst ? row - by * idx(p.images.d) : by, column) ? U(kNan) : U(0);
    }
    static_cast<U*>(p.z)[i] = y;
}

} // namespace tw::ops::attention_guard
