// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

namespace {

// Rows of k numbers, each normalized.
Tensor normalizedFirst(TensorRef const& a, Attrs const& attrs)
{
    int64_t const k = a.dims[a.dims.rank - 1];
    Tensor out(DataType::kFloat, a.dims);
    for (int64_t row = 0; row < a.count(); row += k) {
        double mean = 0, variance = 0;
        for (int64_t p = 0; p < k && attrs.firstNorm == FirstNorm::kLayer; ++p)
            mean += a.get(row + p) / double(k);
        for (int64_t p = 0; p < k; ++p)
            variance += (a.get(row + p) - mean) * (a.get(row + p) - mean) / double(k);
        for (int64_t p = 0; p < k; ++p)
            out.ref().set(row + p, (a.get(row + p) - mean) / std::sqrt(variance + attrs.firstEpsilon));
    }
    return out;
}

// The same sums, row by row: factors become doubles once. Constants are folded so.
void rowsOfSums(RefContext& ctx, TensorRef const& a, Geometry const& g, ReferenceEnd const& end)
{
    constexpr int64_t kColumns = 512; // of b that are kept as doubles
    TensorRef const& b = ctx.in(kB);
    std::vector<double> matrix(size_t(g.k * std::min(g.n, kColumns))), row(size_t(g.k)),
        sums(size_t(std::min(g.n, kColumns)));
    Counter c(g.batch);
    int64_t at = 0;
    do {
        int64_t const a0 = c.offset(g.aBatch), b0 = c.offset(g.bBatch);
        for (int64_t first = 0; first < g.n; first += kColumns) {
            int64_t const columns = std::min(kColumns, g.n - first);
            for (int64_t p = 0; p < g.k; ++p)
                for (int64_t j = 0; j < columns; ++j)
                    matrix[size_t(p * columns + j)] = b.get(b0 + p * g.bRow + (first + j) * g.bColumn);
            for (int64_t i = 0; i < g.m; ++i) {
                for (int64_t p = 0; p < g.k; ++p)
                    row[size_t(p)] = a.get(a0 + i * g.aRow + p * g.aColumn);
                for (int64_t j = 0; j < columns; ++j)
                    sums[size_t(j)] = end.begin(first + j);
                for (int64_t p = 0; p < g.k; ++p) {
                    double const factor = row[size_t(p)];
                    double const* const of = &matrix[size_t(p * columns)];
                    for (int64_t j = 0; j < columns; ++j)
                        sums[size_t(j)] += factor * of[j];
                }
                for (int64_t j = 0; j < columns; ++j)
                    end.put(at + i * g.n + first + j, first + j, sums[size_t(j)]);
            }
        }
        at += g.m * g.n;
    } while (c.next());
}

void sums(RefContext& ctx, TensorRef const& a, Geometry const& g, ReferenceEnd const& end)
{
    if (ctx.wantsAll() && g.m > 1)
        return rowsOfSums(ctx, a, g, end);
    TensorRef const& b = ctx.in(kB);
    Counter c(g.batch);
    int64_t at = 0;
    do {
        int64_t const a0 = c.offset(g.aBatch), b0 = c.offset(g.bBatch);
        for (int64_t i = 0; i < g.m; ++i)
            for (int64_t j = 0; j < g.n; ++j, ++at) {
                if (!ctx.wants(at))
                    continue;
                double sum = end.begin(j);
                for (int64_t p = 0; p < g.k; ++p)
                    sum += a.get(a0 + i * g.aRow + p * g.aColumn) * b.get(b0 + p * g.bRow + j * g.bColumn);
                end.put(at, j, sum);
            }
    } while (c.next());
}

// Whole rows, and only those of which an element is wanted.
Result<void> normalizedRows(RefContext& ctx, Geometry const& g, Epilogue const& epilogue)
{
    TensorRef const &a = ctx.in(kA), &b = ctx.in(kB), &y = ctx.out();
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
                x.ref().set(j,
                            sums[size_t(j)] + ctx.in(Epilogue::kBias).get(j) + ctx.in(Epilogue::kResidual).get(at + j));
            TW_TRY(activateReference(epilogue.activation, x.ref()));
            double mean = 0, variance = 0;
            for (int64_t j = 0; j < g.n; ++j)
                mean += x.ref().get(j) / double(g.n);
            for (int64_t j = 0; j < g.n; ++j)
                variance += (x.ref().get(j) - mean) * (x.ref().get(j) - mean) / double(g.n);
            double const deviation = std::sqrt(variance + epilogue.epsilon);
            for (int64_t j = 0; j < g.n; ++j)
                y.set(at + j, (x.ref().get(j) - mean) / deviation * ctx.in(Epilogue::kGamma).get(j) +
                                  ctx.in(Epilogue::kBeta).get(j));
        }
    } while (c.next());
    return {};
}

Result<void> gatedSums(RefContext& ctx, TensorRef const& a, Geometry const& g, Epilogue const& epilogue)
{
    TensorRef const &b = ctx.in(kB), &y = ctx.out();
    bool const bias = ctx.has(Epilogue::kBias);
    int64_t const n = g.n / 2;
    Tensor const gates(DataType::kFloat, y.dims);
    std::vector<double> through(size_t(y.count()));
    Counter c(g.batch);
    int64_t at = 0;
    do {
        int64_t const a0 = c.offset(g.aBatch), b0 = c.offset(g.bBatch);
        for (int64_t i = 0; i < g.m; ++i)
            for (int64_t j = 0; j < n; ++j, ++at) {
                if (!ctx.wants(at))
                    continue;
                auto sum = [&](int64_t column) {
                    double x = bias ? ctx.in(Epilogue::kBias).get(column) : 0.0;
                    for (int64_t p = 0; p < g.k; ++p)
                        x += a.get(a0 + i * g.aRow + p * g.aColumn) * b.get(b0 + p * g.bRow + column * g.bColumn);
                    return x;
                };
                gates.ref().set(at, sum(j));
                through[size_t(at)] = sum(n + j);
            }
    } while (c.next());
    TW_TRY(activateReference(epilogue.activation, gates.ref(), ctx.wantedElements()));
    ctx.forEachWanted([&](int64_t i) { y.set(i, gates.ref().get(i) * through[size_t(i)]); });
    return {};
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& attrs = ctx.attrs<Attrs>();
    Geometry const g = geometryOf(attrs, ctx.in(kA).dims, ctx.in(kB).dims);
    if (ctx.out().count() == 0)
        return {};
    if (ctx.has(Epilogue::kGamma))
        return normalizedRows(ctx, g, attrs.epilogue);
    bool const isFirst = attrs.firstNorm != FirstNorm::kNone;
    Tensor const normalized = isFirst ? normalizedFirst(ctx.in(kA), attrs) : Tensor();
    TensorRef const a = isFirst ? normalized.ref() : ctx.in(kA);
    if (attrs.gated)
        return gatedSums(ctx, a, g, attrs.epilogue);
    ReferenceEnd const end(ctx, attrs.epilogue);
    sums(ctx, a, g, end);
    return end.finish();
}

} // namespace tw::ops::matrix_multiply
