// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/shape/op.h"

namespace tw::ops::shape {

Result<void> reference(RefContext& ctx)
{
    for (int i = 0; i < ctx.in(0).dims.rank; ++i)
        ctx.out().setInt(i, ctx.in(0).dims[i]);
    return {};
}

} // namespace tw::ops::shape
