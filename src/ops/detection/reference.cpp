// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/detection/op.h"

namespace tw::ops::detection {

namespace {

struct Rectangle
{
    float v[4]; // two corners
};

float minOf(float a, float b)
{
    return a < b ? a : b;
}
float maxOf(float a, float b)
{
    return a > b ? a : b;
}

Rectangle inOrder(Rectangle const& b)
{
    return {{minOf(b.v[0], b.v[2]), minOf(b.v[1], b.v[3]), maxOf(b.v[0], b.v[2]), maxOf(b.v[1], b.v[3])}};
}

Rectangle fourAt(TensorRef const& t, int64_t box)
{
    Rectangle b;
    for (int i = 0; i < 4; ++i)
        b.v[i] = float(t.get(4 * box + i));
    return b;
}

float expOf(float x)
{
    return float(std::exp(double(x)));
}

Rectangle decoded(Rectangle b, Rectangle const* anchor, Coding coding)
{
    if (coding == Coding::kCorners) {
        if (!anchor)
            return b;
        b = inOrder(b);
        Rectangle const a = inOrder(*anchor);
        return {{b.v[0] + a.v[0], b.v[1] + a.v[1], b.v[2] + a.v[2], b.v[3] + a.v[3]}};
    }
    if (anchor) {
        float const* a = anchor->v;
        b = {{b.v[0] * a[2] + a[0], b.v[1] * a[3] + a[1], a[2] * expOf(b.v[2]), a[3] * expOf(b.v[3])}};
    }
    float const h = b.v[2] / 2, w = b.v[3] / 2;
    return {{b.v[0] - h, b.v[1] - w, b.v[0] + h, b.v[1] + w}};
}

float productOf(float h, float w)
{
    return h > 0 && w > 0 ? h * w : 0;
}

// Of boxes whose corners are in order.
float overlapOf(Rectangle const& p, Rectangle const& q, Pixels pixels)
{
    float const ofBoxes = pixels == Pixels::kNone ? 0 : 1, ofBoth = pixels == Pixels::kAll ? 1 : 0;
    auto areaOfBox = [&](Rectangle const& b) {
        return productOf(b.v[2] - b.v[0] + ofBoxes, b.v[3] - b.v[1] + ofBoxes);
    };
    float const low = maxOf(p.v[0], q.v[0]), left = maxOf(p.v[1], q.v[1]);
    float const high = minOf(p.v[2], q.v[2]), right = minOf(p.v[3], q.v[3]);
    bool const meet = low <= high && left <= right;
    float const shared = productOf((meet ? high - low : 0) + ofBoth, (meet ? right - left : 0) + ofBoth);
    float const all = areaOfBox(p) + areaOfBox(q) - shared;
    return shared > 0 && all > 0 ? shared / all : 0;
}

struct Candidate
{
    float score;
    int64_t box, kind;
};

// Of one image, best first.
std::vector<Candidate> candidatesOf(Attrs const& a, TensorRef const& scores, int64_t n)
{
    int64_t const boxes = scores.dims[1], classes = scores.dims[2];
    double const t = a.least;
    float const least = !a.sigmoid ? float(t)
                        : t <= 0   ? -std::numeric_limits<float>::infinity()
                                   : float(std::log(t / (1 - t)));
    std::vector<Candidate> list;
    for (int64_t i = 0; i < boxes * classes; ++i) {
        int64_t const box = a.classesFirst ? i % boxes : i / classes, kind = a.classesFirst ? i / boxes : i % classes;
        float const score = float(scores.get((n * boxes + box) * classes + kind));
        if (kind != a.background && (a.aboveLeast ? score > least : score >= least))
            list.push_back({score, box, kind});
    }
    std::stable_sort(list.begin(), list.end(),
                     [](Candidate const& p, Candidate const& q) { return p.score > q.score; });
    if (a.limit > 0)
        list.resize(std::min(list.size(), size_t(a.limit)));
    return list;
}

struct Found
{
    Candidate candidate;
    Rectangle box;
};

std::vector<Found> found(RefContext& ctx, int64_t n)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &boxes = ctx.in(kBoxes), &scores = ctx.in(kScores);
    int64_t const count = scores.dims[1], classes = scores.dims[2], own = boxes.dims.rank == 4 ? boxes.dims[2] : 1;
    struct OfClass
    {
        int64_t seen = 0;
        std::vector<Rectangle> stay;
    };
    std::vector<OfClass> all(static_cast<size_t>(classes));
    std::vector<Found> list;
    for (Candidate const& c : candidatesOf(a, scores, n)) {
        if (int64_t(list.size()) == a.most)
            break;
        OfClass& same = all[size_t(c.kind)];
        if (a.limitOfClass > 0 && same.seen++ >= a.limitOfClass)
            continue;
        Rectangle anchor;
        if (ctx.has(kAnchors))
            anchor = fourAt(ctx.in(kAnchors), (ctx.in(kAnchors).dims[0] > 1 ? n * count : 0) + c.box);
        Rectangle const box = decoded(fourAt(boxes, (n * count + c.box) * own + (own > 1 ? c.kind : 0)),
                                      ctx.has(kAnchors) ? &anchor : nullptr, a.coding);
        auto covers = [&](Rectangle const& other) {
            float const overlap = overlapOf(other, inOrder(box), a.pixels);
            return a.aboveOverlap ? overlap > float(a.overlap) : overlap >= float(a.overlap);
        };
        if (std::any_of(same.stay.begin(), same.stay.end(), covers))
            continue;
        same.stay.push_back(inOrder(box));
        if (a.mostOfClass == 0 || int64_t(same.stay.size()) <= a.mostOfClass)
            list.push_back({c, box});
    }
    return list;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int64_t row = 0;
    double last[3] = {-1, -1, -1};
    for (int64_t n = 0; n < ctx.in(kScores).dims[0]; ++n) {
        std::vector<Found> const list = found(ctx, n);
        if (a.rows) {
            for (Found const& f : list) {
                last[0] = double(n), last[1] = double(f.candidate.kind), last[2] = double(f.candidate.box);
                for (int i = 0; i < 3; ++i)
                    ctx.out().set(3 * row + i, last[i]);
                ++row;
            }
            continue;
        }
        ctx.out(0).as<int32_t>()[n] = int32_t(list.size());
        for (int64_t k = 0; k < a.most; ++k, ++row) {
            bool const is = k < int64_t(list.size());
            Found const f = is ? list[size_t(k)] : Found{{0, 0, a.noClass}, {}};
            for (int i = 0; i < 4; ++i) {
                float const v = is ? f.box.v[i] : 0;
                ctx.out(1).set(4 * row + i, !a.clips ? v : v > 0 ? minOf(v, 1) : 0);
            }
            double const x = f.candidate.score;
            ctx.out(2).set(row, is && a.sigmoid ? 1 / (1 + std::exp(-x)) : x);
            ctx.out(3).setInt(row, f.candidate.kind);
        }
    }
    for (; a.rows && row < ctx.out().dims[0]; ++row)
        for (int i = 0; i < 3; ++i)
            ctx.out().set(3 * row + i, last[i]);
    return {};
}

} // namespace tw::ops::detection
