// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/nms/op.h"

namespace tw::ops::nms {

namespace {

struct Rectangle
{
    float left, low, right, high;
    float area() const { return (right - left) * (high - low); }
};

Rectangle boxAt(TensorRef const& boxes, int64_t element, BoxFormat format)
{
    float v[4];
    for (int i = 0; i < 4; ++i)
        v[i] = float(boxes.get(element + i));
    if (format == BoxFormat::kCenterSizes)
        return {v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
    return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

float overlapOf(Rectangle const& a, Rectangle const& b)
{
    float const width = std::min(a.right, b.right) - std::max(a.left, b.left);
    float const height = std::min(a.high, b.high) - std::max(a.low, b.low);
    if (!(width > 0 && height > 0 && a.area() > 0 && b.area() > 0))
        return 0;
    float const shared = width * height;
    return shared / (a.area() + b.area() - shared);
}

struct Candidate
{
    double score;
    int64_t item, kind, box;
};

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &boxes = ctx.in(kBoxes), &scores = ctx.in(kScores);
    int64_t const count = scores.dims[1], classes = scores.dims[2];
    int64_t const boxClasses = boxes.dims.rank == 4 ? boxes.dims[2] : 1, most = ctx.in(kMost).getInt(0);
    float const overlap = ctx.has(kOverlap) ? float(ctx.in(kOverlap).get(0)) : 0;
    double const least = ctx.has(kLeast) ? ctx.in(kLeast).get(0) : 0;
    std::vector<Candidate> rows;
    for (int64_t n = 0; n < scores.dims[0]; ++n) {
        std::vector<Candidate> kept;
        for (int64_t c = 0; c < classes; ++c) {
            std::vector<Candidate> candidates;
            for (int64_t b = 0; b < count; ++b)
                if (double const score = scores.get((n * count + b) * classes + c); score > least)
                    candidates.push_back({score, n, c, b});
            std::stable_sort(candidates.begin(), candidates.end(),
                             [](Candidate const& p, Candidate const& q) { return p.score > q.score; });
            candidates.resize(std::min(candidates.size(), size_t(a.limit)));
            std::vector<Rectangle> stay;
            for (Candidate const& r : candidates) {
                int64_t const at = (n * count + r.box) * boxClasses + (boxClasses > 1 ? c : 0);
                Rectangle const box = boxAt(boxes, 4 * at, a.format);
                auto covers = [&](Rectangle const& other) { return overlapOf(other, box) > overlap; };
                if (int64_t(stay.size()) >= most || std::any_of(stay.begin(), stay.end(), covers))
                    continue;
                stay.push_back(box);
                kept.push_back(r);
            }
        }
        std::stable_sort(kept.begin(), kept.end(),
                         [](Candidate const& p, Candidate const& q) { return p.score > q.score; });
        rows.insert(rows.end(), kept.begin(), kept.end());
    }
    ctx.setOutputDims(0, {int64_t(rows.size()), 3});
    for (size_t i = 0; i < rows.size(); ++i) {
        ctx.out().setInt(int64_t(3 * i), rows[i].item);
        ctx.out().setInt(int64_t(3 * i + 1), rows[i].kind);
        ctx.out().setInt(int64_t(3 * i + 2), rows[i].box);
    }
    ctx.out(1).setInt(0, int64_t(rows.size()));
    return {};
}

} // namespace tw::ops::nms
