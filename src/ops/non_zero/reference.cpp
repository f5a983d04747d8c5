// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/non_zero/op.h"

namespace tw::ops::non_zero {

Result<void> reference(RefContext& ctx)
{
    TensorRef const& x = ctx.in(0);
    int64_t n = 0;
    for (int64_t i = 0; i < x.count(); ++i)
        n += x.get(i) != 0;
    ctx.setOutputDims(0, {x.dims.rank, n});
    int64_t column = 0;
    for (int64_t i = 0; i < x.count(); ++i) {
        if (x.get(i) == 0)
            continue;
        int64_t rest = i;
        for (int d = x.dims.rank - 1; d >= 0; --d) {
            ctx.out().setInt(d * n + column, rest % x.dims[d]);
            rest /= x.dims[d];
        }
        ++column;
    }
    return {};
}

} // namespace tw::ops::non_zero
