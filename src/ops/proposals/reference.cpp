// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/proposals/op.h"

namespace tw::ops::proposals {

namespace {

struct Interval
{
    float low, high;
};

struct Candidate
{
    Interval axes[2];
    float score;
    int64_t kind;
};

float clipped(float v, float limit)
{
    return !(v > 0) ? 0 : v < limit ? v : limit;
}

Interval moved(Attrs const& a, Interval v, float d0, float d1, int axis)
{
    float const plus = float(a.plus), side = v.high - v.low + plus;
    float const growth = d1 * float(a.weights[size_t(2 + axis)]), most = float(a.mostGrowth);
    float const step = d0 * float(a.weights[size_t(axis)]) * side;
    float const centre = (v.low + 0.5F * side) + step, grown = std::exp(growth > most ? most : growth) * side;
    float const low = centre - 0.5F * grown;
    return {low, low + grown - plus};
}

Candidate candidateAt(RefContext& ctx, int64_t image, int64_t box)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const& boxes = ctx.in(kBoxes);
    int64_t const count = boxes.dims[1], at = image * count + box, from = boxes.dims[0] == 1 ? box : at;
    Candidate c{};
    c.score = float(ctx.in(kScores).get(at));
    c.kind = ctx.has(kClasses) ? ctx.in(kClasses).getInt(at) : 0;
    for (int axis = 0; axis < 2; ++axis) {
        Interval& v = c.axes[axis];
        v = {float(boxes.get(4 * from + axis)), float(boxes.get(4 * from + 2 + axis))};
        if (ctx.has(kDeltas))
            v = moved(a, v, float(ctx.in(kDeltas).get(4 * at + axis)), float(ctx.in(kDeltas).get(4 * at + 2 + axis)),
                      axis);
        float limit = a.limits.empty() ? 0 : float(a.limits[size_t(axis)]);
        if (ctx.has(kImages))
            limit = float(ctx.in(kImages).get(3 * image + 1 - axis)) - 1;
        if (ctx.has(kImages) || !a.limits.empty())
            v = {clipped(v.low, limit), clipped(v.high, limit)};
    }
    return c;
}

bool isCandidate(RefContext& ctx, Candidate const& c, int64_t image)
{
    auto const& a = ctx.attrs<Attrs>();
    float const scale = ctx.has(kImages) ? float(ctx.in(kImages).get(3 * image + 2)) : 1;
    float const least = float(a.minSide) * scale;
    bool isLarge = true;
    for (Interval const& v : c.axes) {
        float const side = v.high - v.low + float(a.areaPlus);
        isLarge = isLarge && (a.isMinStrict ? side > least : side >= least);
    }
    return c.score >= float(a.least) && c.score > float(a.above) && (isLarge || !a.asksSides());
}

float overlapOf(Candidate const& a, Candidate const& b, float plus)
{
    float shared = 1, ofA = 1, ofB = 1;
    for (int axis = 0; axis < 2; ++axis) {
        Interval const &x = a.axes[axis], &y = b.axes[axis];
        float const side = (x.high < y.high ? x.high : y.high) - (x.low > y.low ? x.low : y.low) + plus;
        if (!(side > 0))
            return 0;
        shared *= side;
        ofA *= x.high - x.low + plus;
        ofB *= y.high - y.low + plus;
    }
    float const all = ofA + ofB - shared;
    return all > 0 ? shared / all : 0;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int64_t const columns = ctx.out().dims[2];
    for (int64_t n = 0; n < ctx.out().dims[0]; ++n) {
        std::vector<Candidate> candidates, stay;
        for (int64_t box = 0; box < ctx.in(kBoxes).dims[1]; ++box)
            if (Candidate const c = candidateAt(ctx, n, box); isCandidate(ctx, c, n))
                candidates.push_back(c);
        std::stable_sort(candidates.begin(), candidates.end(),
                         [](Candidate const& p, Candidate const& q) { return p.score > q.score; });
        candidates.resize(std::min(candidates.size(), size_t(a.limit)));
        for (Candidate const& c : candidates) {
            auto const covers = [&](Candidate const& other) {
                return c.kind == other.kind && overlapOf(other, c, float(a.areaPlus)) > float(a.overlap);
            };
            if (int64_t(stay.size()) < a.keep && std::none_of(stay.begin(), stay.end(), covers))
                stay.push_back(c);
        }
        for (int64_t k = 0; k < a.keep; ++k) {
            bool const isThere = k < int64_t(stay.size());
            Candidate const c = isThere ? stay[size_t(k)] : Candidate{{}, 0, -1};
            double const row[] = {c.axes[0].low,  c.axes[1].low,  c.axes[0].high,
                                  c.axes[1].high, double(c.kind), c.score};
            for (int64_t i = 0; i < columns; ++i)
                ctx.out().set((n * a.keep + k) * columns + i, row[i]);
            ctx.out(1).set(n * a.keep + k, isThere ? double(c.score) : -INFINITY);
        }
    }
    return {};
}

} // namespace tw::ops::proposals
