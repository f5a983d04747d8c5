// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <cmath>

#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    int64_t const n = x.dims.volume(int(a.axis), x.dims.rank);
    for (int64_t row = 0; row < y.count(); row += n) {
        bool wanted = false;
        for (int64_t i = 0; i < n && !wanted; ++i)
            wanted = ctx.wants(row + i);
        if (!wanted)
            continue;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; ++i)
            mean += x.get(row + i) / double(n);
        for (int64_t i = 0; i < n; ++i)
            variance += (x.get(row + i) - mean) * (x.get(row + i) - mean) / double(n);
        double const deviation = std::sqrt(variance + a.epsilon);
        for (int64_t i = 0; i < n; ++i) {
            double const gamma = a.hasGamma ? ctx.in(a.gammaInput()).get(i) : 1;
            double const beta = a.hasBeta ? ctx.in(a.betaInput()).get(i) : 0;
            y.set(row + i, (x.get(row + i) - mean) / deviation * gamma + beta);
        }
    }
    return {};
}

} // namespace tw::ops::layer_norm
