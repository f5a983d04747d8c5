// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/pooling/op.h"

namespace tw::ops::pooling {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    Geometry const g = geometryOf(a, x.dims, y.dims);
    double const lowest = isQuantized(x.type) ? numberType(x.type).lowest : -std::numeric_limits<double>::infinity();
    double const blend = a.blend;
    ctx.forEachWanted([&](int64_t at) {
        int64_t const rest = at / g.out[2], n = rest / g.out[1] / g.out[0];
        int64_t const o[3]{rest / g.out[1] % g.out[0], rest % g.out[1], at % g.out[2]};
        int64_t begin[3], end[3]; // the window's part inside x
        double inside = 1, padded = 1;
        for (int i = 0; i < 3; ++i) {
            int64_t const start = o[i] * g.stride[i] - g.before[i], stop = start + g.window[i];
            begin[i] = std::max<int64_t>(start, 0);
            end[i] = std::max(std::min(stop, g.in[i]), begin[i]);
            inside *= double(end[i] - begin[i]);
            padded *= double(std::min(stop, g.in[i] + g.after[i]) - start);
        }
        double largest = lowest, sum = 0;
        for (int64_t i0 = begin[0]; i0 < end[0]; ++i0)
            for (int64_t i1 = begin[1]; i1 < end[1]; ++i1)
                for (int64_t i2 = begin[2]; i2 < end[2]; ++i2) {
                    double const v = x.get(((n * g.in[0] + i0) * g.in[1] + i1) * g.in[2] + i2);
                    sum += v;
                    if (v > largest || std::isnan(v))
                        largest = v;
                }
        double const average = inside == 0 ? 0 : sum / (a.excludePadding ? inside : padded);
        y.setReal(at, a.kind == Kind::kMax       ? largest
                      : a.kind == Kind::kAverage ? average
                                                 : (1 - blend) * largest + blend * average);
    });
    return {};
}

} // namespace tw::ops::pooling
