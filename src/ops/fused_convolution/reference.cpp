// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"
#include "ops/fused_convolution/op.h"

namespace tw::ops::fused_convolution {

// What the parts mean, one after the other.
Result<void> reference(RefContext& ctx)
{
    TW_TRY(convolution::reference(ctx));
    TensorRef const& y = ctx.out();
    if (ctx.has(3))
        ctx.forEachWanted([&](int64_t i) { y.set(i, y.get(i) + ctx.in(3).get(i)); });
    return activateReference(ctx.attrs<Attrs>().activation, y, ctx.wantedElements());
}

} // namespace tw::ops::fused_convolution
