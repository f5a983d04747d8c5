// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/scatter/op.h"

namespace tw::ops::scatter {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &j = ctx.in(1), &u = ctx.in(2), &y = ctx.out();
    auto copy = [&](TensorRef const& from, int64_t i, int64_t to) {
        if (isFloating(y.type))
            y.set(to, from.get(i));
        else
            y.setInt(to, from.getInt(i));
    };
    for (int64_t i = 0; i < y.count(); ++i)
        copy(x, i, i);
    if (u.count() == 0)
        return {};
    Extents const yStrides = stridesOf(y.dims), jStrides = stridesOf(j.dims);
    int const q = j.dims.rank;
    Counter c(u.dims);
    int64_t at = 0;
    do {
        Extents to;
        to.rank = y.dims.rank;
        bool inside = true;
        auto setFromIndex = [&](int d, int64_t jOffset) {
            int64_t const index = j.getInt(jOffset), size = y.dims[d];
            to[d] = index < 0 ? index + size : index;
            inside = inside && to[d] >= 0 && to[d] < size;
        };
        if (a.mode == Mode::kElement) {
            for (int d = 0; d < y.dims.rank; ++d)
                to[d] = c.at[d];
            setFromIndex(int(a.axis), at);
        } else {
            int const k = int(j.dims[q - 1]);
            int64_t jOffset = 0;
            for (int d = 0; d < q - 1; ++d)
                jOffset += c.at[d] * jStrides[d];
            for (int d = 0; d < k; ++d)
                setFromIndex(d, jOffset + d);
            for (int d = k; d < y.dims.rank; ++d)
                to[d] = c.at[q - 1 + d - k];
        }
        int64_t offset = 0;
        for (int d = 0; inside && d < y.dims.rank; ++d)
            offset += to[d] * yStrides[d];
        if (inside)
            copy(u, at, offset);
        ++at;
    } while (c.next());
    return {};
}

} // namespace tw::ops::scatter
