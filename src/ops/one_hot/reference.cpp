// SPDX-License-Identifier: Apache-2.0
#include "ops/one_hot/op.h"

namespace tw::ops::one_hot {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &indices = ctx.in(0), &values = ctx.in(1), &y = ctx.out();
    int const axis = ctx.attrs<Attrs>().axisIn(y.dims.rank);
    int64_t const depth = y.dims[axis], outer = y.dims.volume(0, axis), inner = y.dims.volume(axis + 1, y.dims.rank);
    int64_t at = 0;
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t d = 0; d < depth; ++d)
            for (int64_t i = 0; i < inner; ++i) {
                int64_t const index = indices.getInt(o * inner + i);
                y.set(at++, values.get(index == d || index + depth == d ? 1 : 0));
            }
    return {};
}

} // namespace tw::ops::one_hot
