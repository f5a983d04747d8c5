// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &a = ctx.in(0), &b = ctx.in(1), &y = ctx.out();
    Geometry const g = geometryOf(ctx.attrs<Attrs>(), a.dims, b.dims);
    if (y.count() == 0)
        return {};
    Counter c(g.batch);
    int64_t at = 0;
    do {
        int64_t const a0 = c.offset(g.aBatch), b0 = c.offset(g.bBatch);
        for (int64_t i = 0; i < g.m; ++i)
            for (int64_t j = 0; j < g.n; ++j, ++at) {
                if (!ctx.wants(at))
                    continue;
                double sum = 0;
                for (int64_t p = 0; p < g.k; ++p)
                    sum += a.get(a0 + i * g.aRow + p * g.aColumn) * b.get(b0 + p * g.bRow + j * g.bColumn);
                y.set(at, sum);
            }
    } while (c.next());
    return {};
}

} // namespace tw::ops::matrix_multiply
