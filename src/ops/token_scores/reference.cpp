// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "families/decoding/row_params.h"
#include "ops/token_scores/op.h"

namespace tw::ops::token_scores {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<int64_t> rowOf(TensorRef const& t, int64_t row, int64_t length)
{
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < length; ++i)
        ids.push_back(t.getInt(row * t.dims[t.dims.rank - 1] + i));
    return ids;
}

std::vector<float> scoresOf(RefContext& ctx, int64_t row)
{
    int64_t const tokens = ctx.in(kLogits).dims[1];
    std::vector<float> y(static_cast<size_t>(tokens));
    for (int64_t i = 0; i < tokens; ++i) {
        float const x = float(ctx.in(kLogits).get(row * tokens + i));
        y[size_t(i)] = std::isnan(x) ? -kInfinity : std::min(x, FLT_MAX);
    }
    if (!ctx.attrs<Attrs>().logSoftmax || y.empty())
        return y;
    double const most = *std::max_element(y.begin(), y.end());
    double sum = 0;
    for (float x : y)
        sum += std::isinf(x) ? 0 : std::exp(double(x) - most);
    for (float& x : y)
        x = std::isinf(x) ? x : float(double(x) - most - std::log(sum));
    return y;
}

// Whether `all` ends with the `count` ids from `from` on.
bool endsWith(std::vector<int64_t> const& all, std::vector<int64_t>::const_iterator from, size_t count)
{
    return count <= all.size() && std::equal(from, from + long(count), all.end() - long(count));
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int64_t const rows = ctx.in(kLogits).dims[0], tokens = ctx.in(kLogits).dims[1];
    int64_t const capacity = ctx.in(kSequences).dims[ctx.in(kSequences).dims.rank - 1];
    for (int64_t row = 0; row < rows; ++row) {
        int64_t const n = row / a.beams;
        auto const number = [&](int column, double otherwise) {
            TensorRef const& t = ctx.in(kFloats);
            double const v = column < t.dims[1] ? t.get(n * t.dims[1] + column) : otherwise;
            return float(std::isfinite(v) ? v : otherwise);
        };
        auto const integer = [&](int column, int64_t otherwise) {
            TensorRef const& t = ctx.in(kInts);
            return column < t.dims[1] ? t.getInt(n * t.dims[1] + column) : otherwise;
        };
        int64_t const length = std::clamp<int64_t>(ctx.in(kLengths).getInt(n), 0, capacity);
        int64_t const prompt = std::clamp<int64_t>(ctx.in(kPrompts).getInt(n), 0, length);
        std::vector<int64_t> const sequence = rowOf(ctx.in(kSequences), row, length);
        std::vector<float> y = scoresOf(ctx, row);
        auto const isToken = [&](int64_t id) { return id >= 0 && id < tokens; };
        auto const forbid = [&](int64_t id) {
            if (isToken(id))
                y[size_t(id)] = -kInfinity;
        };

        float repetition = number(decoding::kRepetition, 1);
        if (repetition <= 0)
            repetition = 1;
        std::vector<int64_t> all(static_cast<size_t>(tokens)), made(all);
        for (int64_t i = 0; i < length; ++i)
            if (isToken(sequence[size_t(i)])) {
                ++all[size_t(sequence[size_t(i)])];
                made[size_t(sequence[size_t(i)])] += i >= prompt;
            }
        for (size_t t = 0; t < y.size(); ++t) {
            if (std::isinf(y[t]))
                continue;
            if (all[t] > 0)
                y[t] = y[t] > 0 ? y[t] / repetition : y[t] * repetition;
            if (made[t] > 0) {
                y[t] -= number(decoding::kPresence, 0);
                y[t] -= number(decoding::kFrequency, 0) * float(made[t]);
            }
        }

        if (int64_t const gram = integer(decoding::kNgram, 0); gram > 0)
            for (int64_t i = 0; i + gram <= length; ++i)
                if (endsWith(sequence, sequence.begin() + i, size_t(gram - 1)))
                    forbid(sequence[size_t(i + gram - 1)]);
        if (ctx.has(kBadWords)) {
            int64_t const room = ctx.in(kBadWords).dims[2];
            std::vector<int64_t> const ids = rowOf(ctx.in(kBadWords), 2 * n, room);
            std::vector<int64_t> const ends = rowOf(ctx.in(kBadWords), 2 * n + 1, room);
            int64_t begin = 0;
            for (int64_t end : ends) {
                if (end <= begin || end > room)
                    break;
                if (endsWith(sequence, ids.begin() + begin, size_t(end - begin - 1)))
                    forbid(ids[size_t(end - 1)]);
                begin = end;
            }
        }
        if (length < integer(decoding::kMinLength, 0)) {
            forbid(integer(decoding::kEos, -1));
            for (int64_t i = 0; ctx.has(kEnds) && i < ctx.in(kEnds).count(); ++i)
                forbid(ctx.in(kEnds).getInt(i));
        }
        for (int64_t t = 0; t < tokens; ++t) {
            float const v = y[size_t(t)];
            ctx.out().set(row * tokens + t, length == 0 || std::isnan(v) ? -kInfinity : std::min(v, FLT_MAX));
        }
    }
    return {};
}

} // namespace tw::ops::token_scores
