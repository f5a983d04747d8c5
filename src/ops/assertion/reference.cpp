// SPDX-License-Identifier: Apache-2.0
#include "ops/assertion/op.h"

namespace tw::ops::assertion {

Result<void> reference(RefContext& ctx)
{
    TensorRef const& x = ctx.in(0);
    for (int64_t i = 0; i < x.count(); ++i)
        if (x.getInt(i) == 0)
            return ctx.error(ctx.attrs<Attrs>().failure(i, x.count()));
    return {};
}

} // namespace tw::ops::assertion
