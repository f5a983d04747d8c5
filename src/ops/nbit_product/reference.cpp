// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <vector>

#include "ops/nbit_product/op.h"

namespace tw::ops::nbit_product {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(kX), &y = ctx.out();
    int64_t const n = ctx.in(kScales).dims[0], rows = n == 0 ? 0 : y.count() / n;
    int32_t const* const groups = ctx.has(kGroups) ? ctx.in(kGroups).as<int32_t>() : nullptr;
    std::vector<double> w(size_t(a.k));
    for (int64_t j = 0; j < n; ++j) {
        for (int64_t p = 0; p < a.k; ++p) {
            int64_t const at = j * a.blocks() + a.group(groups, p);
            double const zero = ctx.has(kZeros) ? ctx.in(kZeros).get(at) : a.middle();
            w[size_t(p)] = ctx.in(kScales).get(at) * (a.quantized(ctx.in(kWeights).as<int32_t>(), j, p) - zero);
        }
        for (int64_t i = 0; i < rows; ++i) {
            if (!ctx.wants(i * n + j))
                continue;
            double sum = ctx.has(kBias) ? ctx.in(kBias).get(j) : 0;
            for (int64_t p = 0; p < a.k; ++p)
                sum += x.get(i * a.k + p) * w[size_t(p)];
            y.set(i * n + j, sum);
        }
    }
    return {};
}

} // namespace tw::ops::nbit_product
