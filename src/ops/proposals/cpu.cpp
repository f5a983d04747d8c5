// SPDX-License-Identifier: Apache-2.0
// Images are shared out to the workers. Boxes are moved where their scores do not decide, and when their turn comes.
#include <algorithm>
#include <cmath>

#include "base/element.h"
#include "ops/proposals/op.h"

namespace tw::ops::proposals {

namespace {

float numberAt(TensorRef const& t, int64_t i)
{
    return withFloat(t.type, [&](auto element) { return loadElement(t.as<decltype(element)>()[i]); });
}

struct Box
{
    float low[2], high[2];
    float area;
    int32_t kind;
};

float within(float v, float limit)
{
    return !(v > 0) ? 0 : v < limit ? v : limit;
}

bool overlapsMore(Box const& a, Box const& b, float plus, float limit)
{
    float side[2];
    for (int i = 0; i < 2; ++i) {
        side[i] = (a.high[i] < b.high[i] ? a.high[i] : b.high[i]) - (a.low[i] > b.low[i] ? a.low[i] : b.low[i]) + plus;
        if (!(side[i] > 0))
            return 0 > limit;
    }
    float const shared = side[0] * side[1], all = a.area + b.area - shared;
    return (all > 0 ? shared / all : 0) > limit;
}

class Image
{
public:
    Image(Attrs const& a, RunArgs const& args, int64_t n, int32_t* list, Box* stay)
        : a_(a), boxes_(args.inputs[kBoxes]), scores_(args.inputs[kScores]), deltas_(given(args, kDeltas)),
          classes_(given(args, kClasses)), count_(scores_.dims[1]), first_(n * count_), list_(list), stay_(stay),
          isClipped_(!a.limits.empty())
    {
        for (size_t i = 0; i < a.limits.size(); ++i)
            limits_[i] = float(a.limits[i]);
        if (TensorRef const* images = given(args, kImages)) {
            isClipped_ = true;
            limits_[0] = numberAt(*images, 3 * n + 1) - 1;
            limits_[1] = numberAt(*images, 3 * n) - 1;
            leastSide_ *= numberAt(*images, 3 * n + 2);
        }
    }

    void run(float* rows, int64_t columns, float* scores)
    {
        int64_t const looked = sort();
        int64_t kept = 0;
        float const plus = float(a_.areaPlus), overlap = float(a_.overlap);
        for (int64_t i = 0; i < looked && kept < a_.keep; ++i) {
            Box const box = boxAt(list_[i]);
            auto const covers = [&](Box const& o) { return o.kind == box.kind && overlapsMore(o, box, plus, overlap); };
            if (std::any_of(stay_, stay_ + kept, covers))
                continue;
            write(rows + kept * columns, columns, box, scoreAt(list_[i]));
            scores[kept] = scoreAt(list_[i]);
            stay_[kept++] = box;
        }
        for (; kept < a_.keep; ++kept) {
            write(rows + kept * columns, columns, Box{{}, {}, 0, -1}, 0);
            scores[kept] = -INFINITY;
        }
    }

private:
    static TensorRef const* given(RunArgs const& args, size_t i)
    {
        return i < args.inputs.size() && args.inputs[i].data ? &args.inputs[i] : nullptr;
    }
    static void write(float* row, int64_t columns, Box const& box, float score)
    {
        float const all[] = {box.low[0], box.low[1], box.high[0], box.high[1], float(box.kind), score};
        std::copy_n(all, columns, row);
    }
    float scoreAt(int64_t box) const { return numberAt(scores_, first_ + box); }

    // The candidates to look at, best first; how many.
    int64_t sort()
    {
        int32_t* end = list_;
        float const least = float(a_.least), above = float(a_.above);
        withFloat(scores_.type, [&](auto element) {
            auto const* const scores = scores_.as<decltype(element)>() + first_;
            for (int64_t b = 0; b < count_; ++b)
                if (float const s = loadElement(scores[b]); s >= least && s > above && (!a_.asksSides() || isLarge(b)))
                    *end++ = int32_t(b);
            auto const isBetter = [&](int32_t p, int32_t q) {
                float const x = loadElement(scores[p]), y = loadElement(scores[q]);
                return x > y || (x == y && p < q);
            };
            if (end - list_ > a_.limit) {
                std::nth_element(list_, list_ + a_.limit, end, isBetter);
                end = list_ + a_.limit;
            }
            std::sort(list_, end, isBetter);
        });
        return end - list_;
    }

    bool isLarge(int64_t b) const
    {
        Box const box = boxAt(b);
        for (int i = 0; i < 2; ++i) {
            float const side = box.high[i] - box.low[i] + float(a_.areaPlus);
            if (!(a_.isMinStrict ? side > leastSide_ : side >= leastSide_))
                return false;
        }
        return true;
    }

    Box boxAt(int64_t b) const
    {
        Box box{};
        int64_t const at = first_ + b, from = boxes_.dims[0] == 1 ? b : at;
        float const plus = float(a_.plus), most = float(a_.mostGrowth), areaPlus = float(a_.areaPlus);
        for (int i = 0; i < 2; ++i) {
            float low = numberAt(boxes_, 4 * from + i), high = numberAt(boxes_, 4 * from + 2 + i);
            if (deltas_) {
                float const side = high - low + plus;
                float const growth = numberAt(*deltas_, 4 * at + 2 + i) * float(a_.weights[size_t(2 + i)]);
                float const step = numberAt(*deltas_, 4 * at + i) * float(a_.weights[size_t(i)]) * side;
                float const centre = (low + 0.5F * side) + step;
                float const grown = std::exp(growth > most ? most : growth) * side;
                low = centre - 0.5F * grown;
                high = low + grown - plus;
            }
            box.low[i] = isClipped_ ? within(low, limits_[i]) : low;
            box.high[i] = isClipped_ ? within(high, limits_[i]) : high;
        }
        box.area = (box.high[0] - box.low[0] + areaPlus) * (box.high[1] - box.low[1] + areaPlus);
        box.kind = classes_ ? classes_->as<int32_t>()[at] : 0;
        return box;
    }

    Attrs const& a_;
    TensorRef const &boxes_, &scores_;
    TensorRef const *deltas_, *classes_;
    int64_t count_, first_;
    int32_t* const list_;
    Box* const stay_;
    bool isClipped_;
    float limits_[2] = {};
    float leastSide_ = float(a_.minSide);
};

// Of each image: the list of its boxes, those that stay.
int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return in[kScores].dims.volume() * int64_t(sizeof(int32_t)) +
           in[kScores].dims[0] * node.attrsAs<Attrs>().keep * int64_t(sizeof(Box));
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    Extents const& scores = args.inputs[kScores].dims;
    TensorRef const &y = args.outputs[0], &best = args.outputs[1];
    auto* const stay = static_cast<Box*>(args.workspace);
    auto* const lists = reinterpret_cast<int32_t*>(stay + scores[0] * a.keep);
    args.workers->run(scores[0], [&](int64_t n, int) {
        Image image(a, args, n, lists + n * scores[1], stay + n * a.keep);
        image.run(y.as<float>() + n * a.keep * y.dims[2], y.dims[2], best.as<float>() + n * a.keep);
    });
    return {};
}

constexpr PlainTactic kPlain{"proposals_any_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::proposals
