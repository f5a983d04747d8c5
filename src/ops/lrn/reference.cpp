// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>

#include "ops/lrn/op.h"

namespace tw::ops::lrn {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    int const rank = x.dims.rank;
    int64_t const channels = x.dims[rank - 3], plane = x.dims[rank - 2] * x.dims[rank - 1], reach = a.window / 2;
    for (int64_t n = 0; n < x.dims.volume(0, rank - 3); ++n)
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t i = 0; i < plane; ++i) {
                double sum = 0;
                for (int64_t j = std::max<int64_t>(c - reach, 0); j <= std::min(c + reach, channels - 1); ++j) {
                    double const v = x.get((n * channels + j) * plane + i);
                    sum += v * v;
                }
                int64_t const at = (n * channels + c) * plane + i;
                double const base = double(a.k) + double(a.alpha) / double(a.window) * sum;
                y.set(at, x.get(at) / std::pow(base, double(a.beta)));
            }
    return {};
}

} // namespace tw::ops::lrn
