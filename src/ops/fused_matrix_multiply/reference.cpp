// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"
#include "ops/fused_matrix_multiply/op.h"

namespace tw::ops::fused_matrix_multiply {

// What the parts mean, one after the other.
Result<void> reference(RefContext& ctx)
{
    TW_TRY(matrix_multiply::reference(ctx));
    TensorRef const& y = ctx.out();
    if (ctx.has(2)) {
        int64_t const n = ctx.in(2).count();
        for (int64_t i = 0; i < y.count(); ++i)
            if (ctx.wants(i))
                y.set(i, y.get(i) + ctx.in(2).get(i % n));
    }
    if (ctx.has(3))
        for (int64_t i = 0; i < y.count(); ++i)
            if (ctx.wants(i))
                y.set(i, y.get(i) + ctx.in(3).get(i));
    return activateReference(ctx.attrs<Attrs>().activation, y, ctx.wantedElements());
}

} // namespace tw::ops::fused_matrix_multiply
