// SPDX-License-Identifier: Apache-2.0
// A unit of y for each thread: of u where a row of it goes there, else of x. Where y holds x, a unit of u for each thread.
// With pages merge alone copies x, and write follows.
//   bool kCircular, kInPages
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/cache_update/cache_update_params.h"

namespace tw::ops::cache_update {

TW_INLINE i64 firstOf(Params const& p, idx image)
{
    i64 const first = p.index ? p.index[image] : 0, capacity = i64(p.capacity);
    return kCircular ? (first % capacity + capacity) % capacity : first;
}
// The first unit of a row of u, of a group of all images.
TW_INLINE idx rowOfUpdate(Params const& p, idx group, idx image, idx i)
{
    return image * idx(p.imageStride) + (group - image * idx(p.image.d)) * idx(p.groupStride) + i * idx(p.rowStride);
}
template <class U>
TW_INLINE void merge(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const row = divide(i, p.row), group = divide(row, p.group), image = divide(group, p.image);
    i64 from = i64(row - group * idx(p.group.d)) - firstOf(p, image); // row of u
    if (kCircular && from < 0)
        from += i64(p.capacity);
    bool const isNew = from >= 0 && from < i64(p.rows);
    static_cast<U*>(p.y)[i] =
        isNew ? static_cast<U const*>(p.u)[rowOfUpdate(p, group, image, idx(from)) + (i - row * idx(p.row.d))]
              : static_cast<U const*>(p.x)[i];
}
template <class U>
TW_INLINE void write(Params const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const row = divide(i, p.row), group = divide(row, p.group), image = divide(group, p.image),
              own = row - group * idx(p.group.d);
    i64 to = i64(own) + firstOf(p, image);
    if (kCircular && to >= i64(p.capacity))
        to -= i64(p.capacity);
    idx ofCache = group;
    i64 rows = i64(p.capacity);
    if constexpr (kInPages) {
        i64 const page = to >= 0 ? to / rows : i64(p.pageCount);
        i64 const block = page < i64(p.pageCount) ? p.pages[i64(image) * i64(p.pageCount) + page] : -1;
        if (block < 0 || block >= i64(p.blocks))
            return;
        ofCache = idx(block) * idx(p.image.d) + (group - image * idx(p.image.d));
        to -= page * rows;
    }
    if (to >= 0 && to < rows)
        static_cast<U*>(p.y)[(ofCache * idx(rows) + idx(to)) * idx(p.row.d) + (i - row * idx(p.row.d))] =
            static_cast<U const*>(p.u)[rowOfUpdate(p, group, image, own) + (i - row * idx(p.row.d))];
}

} // namespace tw::ops::cache_update
