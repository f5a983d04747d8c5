// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/slice/op.h"

namespace tw::ops::slice {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    if (y.count() == 0)
        return {};
    Steps const steps =
        stepsOf(a, ctx.has(1) ? ctx.in(1) : TensorRef{}, ctx.has(3) ? ctx.in(3) : TensorRef{}, x.dims.rank);
    Extents const strides = stridesOf(x.dims);
    Counter at(y.dims);
    int64_t i = 0;
    do {
        int64_t from = 0;
        bool inside = true;
        for (int d = 0; d < x.dims.rank; ++d) {
            int64_t const size = x.dims[d];
            int64_t p = steps.start[d] + at.at[d] * steps.stride[d];
            if (a.mode == Mode::kWrap) {
                p = (p % size + size) % size;
            } else if (a.mode == Mode::kClamp) {
                p = p < 0 ? 0 : p >= size ? size - 1 : p;
            } else if (a.mode == Mode::kReflect) {
                int64_t const period = size > 1 ? 2 * (size - 1) : 1; // 0 1 2 3 2 1 | 0 1 2 ...
                p = (p % period + period) % period;
                p = p >= size ? period - p : p;
            }
            inside = inside && p >= 0 && p < size;
            from += p * strides[d];
        }
        if (!inside && a.mode == Mode::kStrict)
            return ctx.error("a coordinate is out of the bounds " + x.dims.str() + " of the input");
        if (isFloating(x.type))
            y.set(i, inside ? x.get(from) : ctx.has(4) ? ctx.in(4).get(0) : 0);
        else
            y.setInt(i, inside ? x.getInt(from) : ctx.has(4) ? ctx.in(4).getInt(0) : 0);
        ++i;
    } while (at.next());
    return {};
}

} // namespace tw::ops::slice
