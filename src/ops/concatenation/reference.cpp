// SPDX-License-Identifier: Apache-2.0
#include "ops/concatenation/op.h"

namespace tw::ops::concatenation {

Result<void> reference(RefContext& ctx)
{
    int const axis = ctx.attrs<Attrs>().axis;
    TensorRef const& y = ctx.out();
    Extents const yStrides = stridesOf(y.dims);
    int64_t before = 0; // along the axis, of the inputs that stand before
    for (int k = 0; k < ctx.inputCount(); ++k) {
        TensorRef const& x = ctx.in(k);
        if (x.count() > 0) {
            Counter at(x.dims);
            int64_t i = 0;
            do
                y.set(at.offset(yStrides) + before * yStrides[axis], x.get(i++));
            while (at.next());
        }
        before += x.dims[axis];
    }
    return {};
}

} // namespace tw::ops::concatenation
