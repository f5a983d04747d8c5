// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/topk/op.h"

namespace tw::ops::topk {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &values = ctx.out(0), &indices = ctx.out(1);
    int const axis = int(a.axis);
    int64_t const n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank);
    auto less = [](double p, double q) { return std::isnan(q) ? !std::isnan(p) : p < q; };
    for (int64_t o = 0; o < x.dims.volume(0, axis); ++o)
        for (int64_t i = 0; i < inner; ++i) {
            auto at = [&](int64_t j) { return x.get((o * n + j) * inner + i); };
            std::vector<int64_t> order;
            for (int64_t j = 0; j < n; ++j)
                order.push_back(j);
            std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
                return a.kind == Kind::kMax ? less(at(q), at(p)) : less(at(p), at(q));
            });
            for (int64_t j = 0; j < a.k; ++j) {
                values.set((o * a.k + j) * inner + i, at(order[size_t(j)]));
                indices.setInt((o * a.k + j) * inner + i, order[size_t(j)]);
            }
        }
    return {};
}

} // namespace tw::ops::topk
