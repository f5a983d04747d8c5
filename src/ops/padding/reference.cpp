// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/padding/op.h"

namespace tw::ops::padding {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    int const rank = x.dims.rank;
    int64_t const h = x.dims[rank - 2], w = x.dims[rank - 1];
    int64_t const outH = y.dims[rank - 2], outW = y.dims[rank - 1];
    int64_t at = 0;
    for (int64_t n = 0; n < x.dims.volume(0, rank - 2); ++n)
        for (int64_t i = 0; i < outH; ++i)
            for (int64_t j = 0; j < outW; ++j, ++at) {
                int64_t const xi = i - a.pre[0], xj = j - a.pre[1];
                bool const inside = xi >= 0 && xi < h && xj >= 0 && xj < w;
                y.set(at, inside ? x.get((n * h + xi) * w + xj) : 0.0);
            }
    return {};
}

} // namespace tw::ops::padding
