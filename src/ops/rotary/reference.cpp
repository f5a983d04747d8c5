// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/rotary/op.h"

namespace tw::ops::rotary {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &c = ctx.in(1), &s = ctx.in(2), &y = ctx.out();
    if (y.count() == 0)
        return {};
    int64_t const last = y.dims.rank - 1, half = a.size / 2;
    auto weight = [&](TensorRef const& t, Extents at, int64_t d) {
        at[int(last)] = t.dims[int(last)] == a.size ? d : a.interleaved ? d / 2 : d % half;
        int64_t i = 0;
        for (int k = 0; k <= last; ++k)
            i = i * t.dims[k] + (t.dims[k] == 1 ? 0 : at[k]);
        return t.get(i);
    };
    Counter at(y.dims);
    int64_t i = 0;
    int64_t const n = y.dims[int(last)];
    auto own = [&](int64_t step) { return x.get(a.rowOfX(i / n, n, x.dims[x.dims.rank - 1]) + i % n + step); };
    do {
        int64_t const d = at.at[int(last)];
        if (d >= a.size) {
            y.set(i, own(0));
        } else {
            bool const isFirst = a.interleaved ? d % 2 == 0 : d < half;
            int64_t const step = a.interleaved ? 1 : half;
            double const other = isFirst ? -own(step) : own(-step);
            y.set(i, own(0) * weight(c, at.at, d) + other * weight(s, at.at, d));
        }
        ++i;
    } while (at.next());
    return {};
}

} // namespace tw::ops::rotary
