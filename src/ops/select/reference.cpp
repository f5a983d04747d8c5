// SPDX-License-Identifier: Apache-2.0
#include "ops/select/op.h"

namespace tw::ops::select {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &c = ctx.in(0), &a = ctx.in(1), &b = ctx.in(2), &y = ctx.out();
    if (y.count() == 0)
        return {};
    Extents const cStrides = stridesOf(c.dims, true), aStrides = stridesOf(a.dims, true),
                  bStrides = stridesOf(b.dims, true);
    Counter at(y.dims);
    int64_t i = 0;
    do
        y.set(i++, c.getInt(at.offset(cStrides)) ? a.get(at.offset(aStrides)) : b.get(at.offset(bStrides)));
    while (at.next());
    return {};
}

} // namespace tw::ops::select
