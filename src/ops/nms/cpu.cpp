// SPDX-License-Identifier: Apache-2.0
// Classes of batch items are shared out to the workers. Each sorts its candidates, and those that stay move to the front of
// their list; rows are put in order at the end. A block of candidates at a time is compared with those that stay, a tile of
// these after the other.
#include <algorithm>
#include <cstring>

#include "base/element.h"
#include "ops/nms/op.h"

namespace tw::ops::nms {

namespace {

float numberAt(TensorRef const& t, int64_t i)
{
    return withFloat(t.type, [&](auto element) { return loadElement(t.as<decltype(element)>()[i]); });
}
float scalarOr(TensorRef const* t, float absent)
{
    return t && t->data ? numberAt(*t, 0) : absent;
}

struct Box
{
    float left, low, right, high;
    float area() const { return (right - left) * (high - low); }
};

bool overlapsMore(Box const& a, Box const& b, float limit)
{
    float const width = std::min(a.right, b.right) - std::max(a.left, b.left);
    float const height = std::min(a.high, b.high) - std::max(a.low, b.low);
    float const ofA = a.area(), ofB = b.area(), shared = width * height;
    if (!(width > 0 && height > 0 && ofA > 0 && ofB > 0))
        return limit < 0;
    return shared / (ofA + ofB - shared) > limit;
}

constexpr int64_t kBlock = 64, kTile = 256, kLanes = 4;
using Lanes [[gnu::vector_size(4 * kLanes)]] = float;

// Boxes side by side; those that are not there touch nothing.
struct Tile
{
    Box box[kTile];
    float left[kTile], low[kTile], right[kTile], high[kTile];

    void clear() { std::memset(this, 0, sizeof *this); }
    void set(int64_t i, Box const& b)
    {
        box[i] = b;
        left[i] = b.left;
        low[i] = b.low;
        right[i] = b.right;
        high[i] = b.high;
    }
    // Whether one of the first `count` overlaps more.
    bool covers(int64_t count, Box const& b, float limit) const
    {
        for (int64_t i = 0; i < count; i += kLanes)
            if (limit < 0 || touches(i, b))
                for (int64_t k = i; k < std::min(i + kLanes, count); ++k)
                    if (overlapsMore(box[k], b, limit))
                        return true;
        return false;
    }

private:
    static Lanes load(float const* x)
    {
        Lanes v;
        std::memcpy(&v, x, sizeof v);
        return v;
    }
    // Most boxes are apart.
    bool touches(int64_t i, Box const& b) const
    {
        Lanes const zero{}, r = zero + b.right, l = zero + b.left, h = zero + b.high, w = zero + b.low;
        Lanes const aRight = load(right + i), aLeft = load(left + i), aHigh = load(high + i), aLow = load(low + i);
        Lanes const width = (r < aRight ? r : aRight) - (l > aLeft ? l : aLeft),
                    height = (h < aHigh ? h : aHigh) - (w > aLow ? w : aLow);
        auto const both = (width > zero) & (height > zero);
        int64_t any[2];
        std::memcpy(any, &both, sizeof any);
        return (any[0] | any[1]) != 0;
    }
};

struct Row
{
    int32_t item, kind, box;
};

class Suppression
{
public:
    Suppression(ir::Node const& node, RunArgs& args)
        : attrs_(node.attrsAs<Attrs>()), args_(args), boxes_(args.inputs[kBoxes]), scores_(args.inputs[kScores]),
          count_(scores_.dims[1]), classes_(scores_.dims[2]), groups_(scores_.dims[0] * classes_),
          boxClasses_(boxes_.dims.rank == 4 ? boxes_.dims[2] : 1), most_(args.inputs[kMost].as<int32_t>()[0]),
          overlap_(scalarOr(optional(kOverlap), 0)), least_(scalarOr(optional(kLeast), 0)),
          lists_(static_cast<int32_t*>(args.workspace)), sizes_(lists_ + groups_ * count_)
    {}

    void run()
    {
        args_.workers->run(groups_, [&](int64_t group, int) { suppress(group); });
        auto* row = args_.outputs[0].as<Row>();
        Row* const first = row;
        for (int64_t n = 0; n < scores_.dims[0]; ++n)
            row = writeRows(n, row);
        args_.outputs[0].dims = {row - first, 3};
        args_.outputs[1].as<int32_t>()[0] = int32_t(row - first);
    }

private:
    TensorRef const* optional(size_t i) const { return i < args_.inputs.size() ? &args_.inputs[i] : nullptr; }
    float scoreOf(int64_t group, int64_t box) const
    {
        return numberAt(scores_, (group / classes_ * count_ + box) * classes_ + group % classes_);
    }
    Box boxOf(int64_t group, int64_t box) const
    {
        int64_t const kind = boxClasses_ > 1 ? group % classes_ : 0;
        int64_t const at = 4 * ((group / classes_ * count_ + box) * boxClasses_ + kind);
        float v[4];
        for (int i = 0; i < 4; ++i)
            v[i] = numberAt(boxes_, at + i);
        if (attrs_.format == BoxFormat::kCenterSizes)
            return {v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
        return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
    }

    // The group's candidates, best first; how many.
    int64_t sorted(int64_t group, int32_t* list) const
    {
        int64_t n = 0;
        for (int64_t b = 0; b < count_; ++b)
            if (scoreOf(group, b) > least_)
                list[n++] = int32_t(b);
        int64_t const wanted = std::min(n, attrs_.limit);
        std::partial_sort(list, list + wanted, list + n, [&](int32_t p, int32_t q) {
            float const a = scoreOf(group, p), b = scoreOf(group, q);
            return a > b || (a == b && p < q);
        });
        return wanted;
    }

    void suppress(int64_t group) const
    {
        int32_t* list = lists_ + group * count_;
        int32_t stay = 0;
        if (most_ > 0)
            for (int64_t i = 0, n = sorted(group, list); i < n && stay < most_; i += kBlock)
                stay = suppressBlock(group, list, i, std::min(kBlock, n - i), stay);
        sizes_[group] = stay;
    }

    // Candidates [first, first + count) of the list, of which `stay` before them stay; how many do then.
    int32_t suppressBlock(int64_t group, int32_t* list, int64_t first, int64_t count, int32_t stay) const
    {
        Box box[kBlock];
        bool isCovered[kBlock] = {};
        for (int64_t i = 0; i < count; ++i)
            box[i] = boxOf(group, list[first + i]);
        Tile tile;
        for (int64_t begin = 0; begin < stay; begin += kTile) {
            int64_t const some = std::min<int64_t>(kTile, stay - begin);
            tile.clear();
            for (int64_t k = 0; k < some; ++k)
                tile.set(k, boxOf(group, list[begin + k]));
            for (int64_t i = 0; i < count; ++i)
                isCovered[i] = isCovered[i] || tile.covers(some, box[i], overlap_);
        }
        tile.clear();
        int64_t own = 0; // of the block
        for (int64_t i = 0; i < count && stay < most_; ++i) {
            if (isCovered[i] || tile.covers(own, box[i], overlap_))
                continue;
            tile.set(own++, box[i]);
            list[stay++] = list[first + i];
        }
        return stay;
    }

    Row* writeRows(int64_t n, Row* row) const
    {
        Row* const first = row;
        for (int64_t group = n * classes_; group < (n + 1) * classes_; ++group)
            for (int32_t i = 0; i < sizes_[group]; ++i)
                *row++ = {int32_t(n), int32_t(group % classes_), lists_[group * count_ + i]};
        if (classes_ > 1)
            std::sort(first, row, [&](Row const& p, Row const& q) {
                float const a = scoreOf(n * classes_ + p.kind, p.box), b = scoreOf(n * classes_ + q.kind, q.box);
                return a != b ? a > b : p.kind != q.kind ? p.kind < q.kind : p.box < q.box;
            });
        return row;
    }

    Attrs const& attrs_;
    RunArgs& args_;
    TensorRef const &boxes_, &scores_;
    int64_t const count_, classes_, groups_, boxClasses_; // a group: a class of a batch item
    int32_t const most_;
    float const overlap_, least_;
    int32_t *const lists_, *const sizes_; // of each group
};

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    Extents const& scores = in[kScores].dims;
    return scores[0] * scores[2] * (scores[1] + 1) * int64_t(sizeof(int32_t));
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    Suppression(node, args).run();
    return {};
}

constexpr PlainTactic kPlain{"nms_any_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::nms
