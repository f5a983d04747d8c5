// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/scale/op.h"

namespace tw::ops::scale {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    Geometry const g = geometryOf(ctx.attrs<Attrs>(), x.dims);
    int64_t i = 0;
    for (int64_t outer = 0; outer < g.outer; ++outer)
        for (int64_t k = 0; k < g.coefficients; ++k)
            for (int64_t inner = 0; inner < g.inner; ++inner, ++i) {
                double v = x.get(i);
                if (ctx.has(1))
                    v *= ctx.in(1).get(k);
                if (ctx.has(2))
                    v += ctx.in(2).get(k);
                if (ctx.has(3))
                    v = std::pow(v, ctx.in(3).get(k));
                y.setReal(i, v);
            }
    return {};
}

} // namespace tw::ops::scale
