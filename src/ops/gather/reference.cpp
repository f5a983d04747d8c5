// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/gather/op.h"

namespace tw::ops::gather {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &j = ctx.in(1), &y = ctx.out();
    if (y.count() == 0)
        return {};
    int const n = int(a.elementWiseDims), axis = int(a.axis), q = j.dims.rank;
    Extents const xStrides = stridesOf(x.dims), jStrides = stridesOf(j.dims);
    Counter c(y.dims);
    int64_t at = 0;
    do {
        // The coordinates of the index (in j) and of the element (in x) that belong to coordinate c of y.
        Extents from;
        from.rank = x.dims.rank;
        bool inside = true;
        auto setFromIndex = [&](int d, int64_t jOffset) {
            int64_t const index = j.getInt(jOffset), size = x.dims[d];
            from[d] = index < 0 ? index + size : index;
            inside = inside && from[d] >= 0 && from[d] < size;
        };
        if (a.mode == Mode::kElement) {
            for (int d = 0; d < x.dims.rank; ++d)
                from[d] = c.at[d];
            setFromIndex(axis, c.offset(jStrides));
        } else if (a.mode == Mode::kDefault) {
            int64_t jOffset = 0;
            for (int d = 0; d < q; ++d) // y: dimensions before the axis, then those of j after the first n
                jOffset += (d >= n ? c.at[axis + d - n] : j.dims[d] == 1 ? 0 : c.at[d]) * jStrides[d];
            for (int d = 0; d < axis; ++d)
                from[d] = x.dims[d] == 1 ? 0 : c.at[d];
            for (int d = axis + 1; d < x.dims.rank; ++d)
                from[d] = c.at[d - 1 + q - n];
            setFromIndex(axis, jOffset);
        } else {
            int const k = int(j.dims[q - 1]);
            int64_t jOffset = 0;
            for (int d = 0; d < q - 1; ++d)
                jOffset += c.at[d] * jStrides[d];
            for (int d = 0; d < n; ++d)
                from[d] = c.at[d];
            for (int d = 0; d < k; ++d)
                setFromIndex(n + d, jOffset + d);
            for (int d = n + k; d < x.dims.rank; ++d)
                from[d] = c.at[q - 1 + d - n - k];
        }
        int64_t offset = 0;
        for (int d = 0; inside && d < x.dims.rank; ++d)
            offset += from[d] * xStrides[d];
        if (isFloating(x.type))
            y.set(at, inside ? x.get(offset) : 0);
        else
            y.setInt(at, inside ? x.getInt(offset) : 0);
        ++at;
    } while (c.next());
    return {};
}

} // namespace tw::ops::gather
