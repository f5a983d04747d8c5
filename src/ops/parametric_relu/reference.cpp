// SPDX-License-Identifier: Apache-2.0

#include "ops/parametric_relu/op.h"

namespace tw::ops::parametric_relu {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &x = ctx.in(0), &slope = ctx.in(1), &y = ctx.out();
    if (y.count() == 0)
        return {};
    Extents const xStrides = stridesOf(x.dims, true), slopeStrides = stridesOf(slope.dims, true);
    Counter at(y.dims);
    int64_t i = 0;
    do {
        double const v = x.get(at.offset(xStrides)), s = slope.get(at.offset(slopeStrides));
        y.setReal(i++, v >= 0 ? v : s * v);
    } while (at.next());
    return {};
}

} // namespace tw::ops::parametric_relu
