// SPDX-License-Identifier: Apache-2.0
// y is the cache x [b, .., s, ..], in which row p + i along `axis` of each image n, p = index[n] (0 without an index), is row i of
// the update u [b, .., k, ..], k <= s; all other dimensions are those of x. Circular: row (p + i) mod s. Linear: rows that
// would lie outside are not written. With a head stride the cache is [b, groups, s, d], axis 2, and u [b, k, w]: row i of group g begins in
// column offset + g * head stride of u's row i, as projections leave it. x and y may lie at one address: then the rows of u are all that is written.
// Rule: ONNX TensorScatter-24.
// With `pages` the cache is blocks of 16 rows, [blocks, groups, 16, d], of all images together, axis 2, and the last input, i32 [b, P], says
// which block holds rows 16 p to 16 p + 15 of image n: pages[n, p]. Rows beyond 16 P are not written, nor those of a number that is no
// block's. Where rows of two images go to one place, it holds one of them, or parts of both.
#pragma once

#include <span>

#include "base/extents.h"
#include "ir/attrs.h"

namespace tw::ops::cache_update {

inline constexpr int64_t kPageRows = 16;

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t axis = 1; // 1 to rank - 1
    bool circular = false;
    int64_t offset = 0, headStride = 0; // of u; head stride 0: u lies as the cache does
    bool pages = false;

    bool isPacked() const { return headStride > 0; }
    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "axis", axis);
        v.field(2, "circular", circular);
        v.field(3, "offset", offset);
        v.field(4, "head_stride", headStride);
        v.field(5, "pages", pages);
    }
};

// Rows of u lie as [images, groups, rows, inner] elements, those of x and y with `capacity` in place of rows and, with pages, `blocks` in
// place of images.
struct Layout
{
    int64_t images, groups, rows, capacity, inner, blocks;
    // Elements between rows, groups and images of u, and in front of the first.
    int64_t rowStride, groupStride, imageStride, offset;

    Layout(Attrs const& a, Extents const& x, Extents const& u)
        : images(u[0]), groups(x.volume(1, int(a.axis))), rows(u[a.isPacked() ? 1 : int(a.axis)]),
          capacity(x[int(a.axis)]), inner(x.volume(int(a.axis) + 1, x.rank)), blocks(x[0]),
          rowStride(a.isPacked() ? u[2] : inner), groupStride(a.isPacked() ? a.headStride : rows * inner),
          imageStride(u.volume(1, u.rank)), offset(a.offset)
    {}
    // The first element of row i.
    int64_t at(int64_t image, int64_t group, int64_t i) const
    {
        return offset + image * imageStride + group * groupStride + i * rowStride;
    }
    // Where row i of an image with this index goes; negative: nowhere.
    int64_t place(Attrs const& a, int64_t index, int64_t i) const
    {
        int64_t const at = index + i;
        if (a.circular)
            return (at % capacity + capacity) % capacity;
        return at < 0 || at >= capacity ? -1 : at;
    }
    // The same among all rows of y. pages: the image's blocks, where there are pages.
    int64_t placeInAll(Attrs const& a, int64_t image, int64_t group, int64_t index, int64_t i,
                       std::span<int32_t const> pages) const
    {
        int64_t const at = a.pages ? index + i : place(a, index, i);
        if (at < 0)
            return -1;
        if (!a.pages)
            return (image * groups + group) * capacity + at;
        int64_t const page = at / kPageRows, block = page < int64_t(pages.size()) ? pages[size_t(page)] : -1;
        return block < 0 || block >= blocks ? -1 : (block * groups + group) * kPageRows + at % kPageRows;
    }
};

} // namespace tw::ops::cache_update
