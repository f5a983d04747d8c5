// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/op.h"

namespace tw::ops::attention {

namespace {

// Where a row of head h of batch b begins.
int64_t rowAt(TensorRef const& x, int64_t heads, Operand const& o, int64_t size, int64_t b, int64_t h, int64_t row)
{
    if (x.dims.rank == 3)
        return (o.rowsFirst ? row * x.dims[1] + b : b * x.dims[1] + row) * x.dims[2] + o.offset + h * o.headStride;
    return ((b * heads + h) * x.dims[2] + row) * size;
}

int64_t broadcastIndex(TensorRef const& x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int64_t const at[] = {b, h, i, j};
    int64_t index = 0;
    for (int d = 0; d < 4; ++d)
        index = index * x.dims[d] + (x.dims[d] == 1 ? 0 : at[d]);
    return index;
}

// To a multiple of `step`, as a quantize and a dequantize do; 0: as it is.
double rounded(double x, double step)
{
    if (step == 0)
        return x;
    return std::isnan(x) ? 0 : step * std::clamp(std::nearbyint(x / step), -128.0, 127.0);
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &q = ctx.in(0), &k = ctx.in(1), &v = ctx.in(2);
    Tensor floats(q.type, a.integers ? ctx.out().dims : Extents{0});
    TensorRef const y = a.integers ? floats.ref() : ctx.out();
    int const masksEnd = a.masksEnd(size_t(ctx.inputCount()));
    int const pages = a.pagesInput(size_t(ctx.inputCount()));
    int64_t const blocks = k.dims[0];
    int64_t columns = k.dims[k.dims.rank == 4 ? 2 : a.k.rowsFirst ? 0 : 1];
    if (a.pages)
        columns = blocks > 0 ? ctx.in(pages).dims[1] * kPageRows : 0;
    int64_t const batch = y.dims[a.rowsFirst ? 1 : 0], rows = y.dims[a.rowsFirst ? 0 : 1];
    Numbers const queries(ctx, 0), keyNumbers(ctx, 1), values(ctx, 2);
    std::vector<double> t(static_cast<size_t>(columns));
    std::vector<int64_t> valueAt(static_cast<size_t>(columns)); // where the rows of v begin
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < a.heads; ++h)
            for (int64_t i = 0; i < rows; ++i) {
                int64_t const g = h / a.headsPerKey, keyHeads = a.keyHeads();
                int64_t const first = (a.rowsFirst ? i * batch + b : b * rows + i) * y.dims[2] + h * a.valueSize;
                int64_t from = 0, to = columns; // of the row's sequence
                if (a.segments)
                    for (int64_t e = 0; e < ctx.in(masksEnd).count(); ++e) {
                        int64_t const begin = ctx.in(masksEnd).getInt(e);
                        if (begin > i) {
                            to = std::min(to, begin);
                            break;
                        }
                        from = std::max(from, begin);
                    }
                if (int const l = a.lengthsInput(size_t(ctx.inputCount())); l >= 0)
                    to = std::clamp<int64_t>(ctx.in(l).getInt(b), 0, columns);
                Keys const keys = keysOf(a, from, to, rows, i);
                auto const imageOf = [&](int64_t j) {
                    if (a.pages)
                        return std::clamp<int64_t>(ctx.in(pages).getInt((b * columns + j) / kPageRows), 0, blocks - 1);
                    int const table = a.tableInput(size_t(ctx.inputCount()));
                    if (table < 0)
                        return b;
                    int64_t const n = ctx.in(table).dims[1];
                    return b - b % n + std::clamp<int64_t>(ctx.in(table).getInt(b * columns + j), 0, n - 1);
                };
                auto const rowOf = [&](int64_t j) { return a.pages ? j % kPageRows : j; };
                from = keys.from;
                to = keys.to;
                auto wants = [&](int64_t d) { return ctx.wants(first + d); };
                int64_t some = 0;
                while (some < a.valueSize && !wants(some))
                    ++some;
                if (some == a.valueSize)
                    continue;
                double highest = -std::numeric_limits<double>::infinity(), sum = 0;
                if (a.sinks && from < to)
                    highest = ctx.in(a.sinksInput(size_t(ctx.inputCount()))).get(h);
                double const sink = highest;
                int const scales = a.scalesInput(size_t(ctx.inputCount()));
                double const keyScale = a.scales ? ctx.in(scales).get(g) : 1;
                double const valueScale = a.scales ? ctx.in(scales + 1).get(g) : 1;
                int64_t const queryAt = rowAt(q, a.heads, a.q, a.size, b, h, i);
                for (int64_t j = from; j < to; ++j) {
                    double s = 0;
                    int64_t const image = imageOf(j), row = rowOf(j);
                    int64_t const keyAt = rowAt(k, keyHeads, a.k, a.size, image, g, row);
                    valueAt[size_t(j)] = rowAt(v, keyHeads, a.v, a.valueSize, image, g, row);
                    for (int64_t d = 0; d < a.size; ++d)
                        s += queries[queryAt + d] * keyNumbers[keyAt + d];
                    s = rounded(s * keyScale * a.scale, a.scoreStep);
                    if (a.softcap > 0)
                        s = a.softcap * std::tanh(s / a.softcap);
                    for (int e = 3; e < masksEnd; ++e)
                        if (ctx.in(e).type == DataType::kBool &&
                            (ctx.in(e).get(broadcastIndex(ctx.in(e), b, h, i, j)) != 0) == a.keepInverted)
                            s = a.fill;
                    for (int e = 3; e < masksEnd; ++e)
                        if (ctx.in(e).type != DataType::kBool)
                            s += ctx.in(e).get(broadcastIndex(ctx.in(e), b, h, i, j));
                    if (a.slopes)
                        s += ctx.in(a.slopesInput(size_t(ctx.inputCount()))).get(h) * double(j - keys.position);
                    t[size_t(j)] = s = rounded(s, a.sumStep);
                    highest = s > highest || std::isnan(s) ? s : highest;
                }
                for (int64_t j = from; j < to; ++j)
                    sum += t[size_t(j)] = std::exp(t[size_t(j)] - highest);
                if (a.sinks && from < to)
                    sum += std::exp(sink - highest);
                for (int64_t j = from; j < to; ++j)
                    t[size_t(j)] = rounded(t[size_t(j)] / sum, a.weightStep);
                for (int64_t d = some; d < a.valueSize; ++d) {
                    if (!wants(d))
                        continue;
                    double s = 0;
                    for (int64_t j = from; j < to; ++j)
                        s += t[size_t(j)] * values[valueAt[size_t(j)] + d];
                    y.set(first + d, s * valueScale);
                    if (!a.integers)
                        continue;
                    float const steps =
                        float(y.get(first + d)) / float(ctx.in(a.scaleInput(size_t(ctx.inputCount()))).get(0));
                    ctx.out().set(first + d, steps == steps ? std::clamp(std::nearbyint(steps), -128.0F, 127.0F) : 0);
                }
            }
    return {};
}

} // namespace tw::ops::attention
