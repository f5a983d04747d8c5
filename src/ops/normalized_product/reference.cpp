// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <cmath>
#include <vector>

#include "ops/normalized_product/op.h"

namespace tw::ops::normalized_product {

// Whole rows, and only those of which an element is wanted.
Result<void> reference(RefContext& ctx)
{
    auto const& attrs = ctx.attrs<Attrs>();
    TensorRef const &a = ctx.in(kA), &b = ctx.in(kB), &y = ctx.out();
    matrix_multiply::Geometry const g = geometryOf(attrs, a.dims, b.dims);
    if (y.count() == 0)
        return {};
    std::vector<double> matrix(size_t(g.k * g.n)); // b [k, n] of this batch
    Tensor const x(DataType::kFloat, {g.n});
    std::vector<double> sums(size_t(g.n));
    int64_t at = 0, inMatrix = -1;
    Counter c(g.batch);
    do {
        int64_t const a0 = c.offset(g.aBatch), b0 = c.offset(g.bBatch);
        for (int64_t i = 0; i < g.m; ++i, at += g.n) {
            bool wanted = false;
            for (int64_t j = 0; j < g.n && !wanted; ++j)
                wanted = ctx.wants(at + j);
            if (!wanted)
                continue;
            if (inMatrix != b0)
                for (int64_t p = 0; p < g.k; ++p)
                    for (int64_t j = 0; j < g.n; ++j)
                        matrix[size_t(p * g.n + j)] = b.get(b0 + p * g.bRow + j * g.bColumn);
            inMatrix = b0;
            std::fill(sums.begin(), sums.end(), 0);
            for (int64_t p = 0; p < g.k; ++p) {
                double const factor = a.get(a0 + i * g.aRow + p * g.aColumn);
                double const* const row = &matrix[size_t(p * g.n)];
                for (int64_t j = 0; j < g.n; ++j)
                    sums[size_t(j)] += factor * row[j];
            }
            for (int64_t j = 0; j < g.n; ++j)
                x.ref().set(j, sums[size_t(j)] + ctx.in(kBias).get(j) + ctx.in(kResidual).get(at + j));
            TW_TRY(activateReference(attrs.activation, x.ref()));
            double mean = 0, variance = 0;
            for (int64_t j = 0; j < g.n; ++j)
                mean += x.ref().get(j) / double(g.n);
            for (int64_t j = 0; j < g.n; ++j)
                variance += (x.ref().get(j) - mean) * (x.ref().get(j) - mean) / double(g.n);
            double const deviation = std::sqrt(variance + attrs.epsilon);
            for (int64_t j = 0; j < g.n; ++j)
                y.set(at + j, (x.ref().get(j) - mean) / deviation * ctx.in(kGamma).get(j) + ctx.in(kBeta).get(j));
        }
    } while (c.next());
    return {};
}

} // namespace tw::ops::normalized_product
