// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"
#include "ops/fused_deconvolution/op.h"

namespace tw::ops::fused_deconvolution {

// What the parts mean, one after the other.
Result<void> reference(RefContext& ctx)
{
    TW_TRY(deconvolution::reference(ctx));
    return activateReference(ctx.attrs<Attrs>().activation, ctx.out(), ctx.wantedElements());
}

} // namespace tw::ops::fused_deconvolution
