// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/cumulative_sum/op.h"

namespace tw::ops::cumulative_sum {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    int const axis = int(a.axis);
    int64_t const outer = x.dims.volume(0, axis), n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank);
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
            double sum = 0;
            int64_t whole = 0; // exact: 2^31 numbers of 32 bits fit
            for (int64_t p = 0; p < n; ++p) {
                int64_t const at = (o * n + (a.reverse ? n - 1 - p : p)) * inner + i;
                double const v = x.get(at), sumBefore = sum;
                int64_t const number = isFloating(x.type) ? 0 : x.getInt(at), wholeBefore = whole;
                sum += v;
                whole += number;
                if (isFloating(y.type))
                    y.set(at, a.exclusive ? sumBefore : sum);
                else
                    y.setInt(at, a.exclusive ? wholeBefore : whole);
            }
        }
    return {};
}

} // namespace tw::ops::cumulative_sum
