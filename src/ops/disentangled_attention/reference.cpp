// SPDX-License-Identifier: Apache-2.0
#include "ops/disentangled_attention/op.h"

namespace tw::ops::disentangled_attention {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const& y = ctx.out();
    int64_t const s = y.dims[1];
    for (int64_t n = 0; n < y.count(); ++n) {
        int64_t const b = n / s / s, i = n / s % s, j = n % s, t = positionOf(i - j, a.span, s);
        y.set(n, (ctx.in(0).get(n) + ctx.in(1).get((b * s + i) * 2 * a.span + t) +
                  ctx.in(2).get((b * s + j) * 2 * a.span + t)) *
                     a.factor);
    }
    return {};
}

} // namespace tw::ops::disentangled_attention
