// SPDX-License-Identifier: Apache-2.0
#include "ops/dequantize/op.h"

namespace tw::ops::dequantize {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &scale = ctx.in(1), &y = ctx.out();
    int64_t const inner = a.axis < 0 ? 1 : x.dims.volume(a.axis + 1, x.dims.rank);
    for (int64_t i = 0; i < y.count(); ++i) {
        int64_t const k = a.axis < 0 ? 0 : i / inner % x.dims[a.axis];
        float const product = float(x.get(i)) * float(scale.get(k));
        y.set(i, product);
    }
    return {};
}

} // namespace tw::ops::dequantize
