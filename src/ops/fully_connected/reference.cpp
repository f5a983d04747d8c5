// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"
#include "ops/fully_connected/op.h"

namespace tw::ops::fully_connected {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &x = ctx.in(0), &w = ctx.in(1), &y = ctx.out();
    int const rank = x.dims.rank;
    int64_t const batch = x.dims.volume(0, rank - 3), v = x.dims.volume(rank - 3, rank), k = w.dims[0];
    for (int64_t n = 0; n < batch; ++n)
        for (int64_t o = 0; o < k; ++o) {
            if (!ctx.wants(n * k + o))
                continue;
            double sum = ctx.has(2) ? ctx.in(2).get(o) : 0.0;
            for (int64_t i = 0; i < v; ++i)
                sum += w.get(o * v + i) * x.get(n * v + i);
            y.set(n * k + o, sum);
        }
    return {};
}

} // namespace tw::ops::fully_connected
