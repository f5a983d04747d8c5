// SPDX-License-Identifier: Apache-2.0
#include "ops/reformat/op.h"

namespace tw::ops::reformat {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    for (int64_t i = 0; i < y.count(); ++i)
        y.set(i, x.get(i));
    return {};
}

} // namespace tw::ops::reformat
