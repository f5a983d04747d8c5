// SPDX-License-Identifier: Apache-2.0
// Scores are gone through in parts, which keep the best candidates that they saw: a full list loses its worse half, and
// what comes later must be better than the worst of the rest. Then each image sorts its candidates some at a time, until
// enough boxes stay.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include "base/element.h"
#include "base/round.h"
#include "ops/detection/kernels.h"
#include "ops/detection/op.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::detection {

namespace {

// A candidate: its score above its place in the order of ties, inverted. Of two, the larger one comes first.
using Key = uint64_t;
Key keyOf(float score, int64_t tie)
{
    uint32_t const bits = std::bit_cast<uint32_t>(score + 0.F); // no -0
    return Key(bits ^ (bits >> 31 ? 0xffffffffU : 0x80000000U)) << 32 | uint32_t(~uint32_t(tie));
}
float scoreOf(Key k)
{
    uint32_t const bits = uint32_t(k >> 32);
    return std::bit_cast<float>(bits ^ (bits >> 31 ? 0x80000000U : 0xffffffffU));
}
int64_t tieOf(Key k)
{
    return ~uint32_t(k);
}

template <class T>
int64_t collectPlain(void const* from, int64_t begin, int64_t n, bool above, float least, int32_t* to, int64_t room,
                     int64_t* end)
{
    auto const* x = static_cast<T const*>(from);
    int64_t count = 0, i = begin;
    for (; i < n && count < room; ++i)
        if (float const v = loadElement(x[i]); above ? v > least : v >= least)
            to[count++] = int32_t(i);
    *end = i;
    return count;
}
Collect plainOf(DataType type)
{
    return withFloat(type, [](auto element) -> Collect { return collectPlain<decltype(element)>; });
}

struct Box
{
    float low, left, high, right;
    float area;
};
struct Kept
{
    Box box;
    int32_t next; // of the same class
};

float smaller(float a, float b)
{
    return a < b ? a : b;
}
float larger(float a, float b)
{
    return a > b ? a : b;
}
float areaOf(float h, float w)
{
    return h > 0 && w > 0 ? h * w : 0;
}
void putInOrder(float (&v)[4])
{
    float const low = smaller(v[0], v[2]), left = smaller(v[1], v[3]);
    v[2] = larger(v[0], v[2]), v[3] = larger(v[1], v[3]), v[0] = low, v[1] = left;
}

// Sizes and the workspace.
struct Layout
{
    static constexpr int64_t kFound = 1024, kMostParts = 8, kPartElements = 1 << 16;

    int64_t items, boxes, classes, elements; // elements: of an image's scores
    int64_t first;                           // candidates that are looked for at first
    int64_t room;                            // keys of a part
    int64_t most, kept;
    bool hasAll; // room for all candidates of an image

    Layout(Attrs const& a, TensorRef const& scores)
        : items(scores.dims[0]), boxes(scores.dims[1]), classes(scores.dims[2]), elements(boxes * classes),
          first(mostCandidates(a, a.limit > 0 ? elements : std::min(elements, std::max<int64_t>(4096, 4 * a.most)))),
          room(2 * first + kFound), most(a.most), kept(mostKept(a, elements)),
          hasAll(first < mostCandidates(a, elements))
    {}
    int64_t parts(int workers) const
    {
        return workers < 2 ? 1
                           : std::clamp<int64_t>(elements / kPartElements, 1, std::min<int64_t>(workers, kMostParts));
    }
    int64_t partBytes() const { return room * int64_t(sizeof(Key)); }
    int64_t keyBytes() const
    {
        return std::clamp<int64_t>(elements / kPartElements, 1, kMostParts) * partBytes() +
               (hasAll ? elements * int64_t(sizeof(Key)) : 0);
    }
    int64_t keptBytes() const { return kept * int64_t(sizeof(Kept)); }
    int64_t classBytes() const { return 3 * classes * int64_t(sizeof(int32_t)); } // first kept box, written, seen
    int64_t rowBytes() const { return 2 * most * int64_t(sizeof(int32_t)); }      // box and class
    int64_t itemBytes() const
    {
        return roundUp(keyBytes(), 64) + roundUp(keptBytes(), 64) + roundUp(classBytes(), 64) +
               roundUp(rowBytes(), 64) + 64 + roundUp(kMostParts * 8, 64);
    }
    int64_t bytes() const { return items * itemBytes(); }
};

class Search
{
public:
    Search(Attrs const& a, RunArgs& args, Collect collect)
        : a_(a), args_(args), l_(a, args.inputs[kScores]), scores_(args.inputs[kScores]), boxes_(args.inputs[kBoxes]),
          anchors_(args.inputs.size() > kAnchors && args.inputs[kAnchors].data ? &args.inputs[kAnchors] : nullptr),
          boxClasses_(boxes_.dims.rank == 4 ? boxes_.dims[2] : 1), least_(leastElement(a)), overlap_(float(a.overlap)),
          collect_(collect), parts_(l_.parts(args.workers->count()))
    {}

    void run()
    {
        args_.workers->run(l_.items * parts_, [&](int64_t unit, int) { collectPart(unit / parts_, unit % parts_); });
        args_.workers->run(l_.items, [&](int64_t item, int) { searchItem(item); });
        if (a_.rows)
            writeRows();
    }

private:
    struct Item // its part of the workspace
    {
        Key* keys;
        Kept* kept;
        int32_t *heads, *written, *seen;
        int32_t (*rows)[2];
        int32_t* count;
        int64_t* found; // by each part; below 0: some were dropped
    };
    Item itemAt(int64_t n) const
    {
        std::byte* at = static_cast<std::byte*>(args_.workspace) + n * l_.itemBytes();
        auto next = [&](int64_t bytes) { return std::exchange(at, at + roundUp(bytes, 64)); };
        Item i;
        i.keys = reinterpret_cast<Key*>(next(l_.keyBytes()));
        i.kept = reinterpret_cast<Kept*>(next(l_.keptBytes()));
        i.heads = reinterpret_cast<int32_t*>(next(l_.classBytes()));
        i.written = i.heads + l_.classes;
        i.seen = i.written + l_.classes;
        i.rows = reinterpret_cast<int32_t(*)[2]>(next(l_.rowBytes()));
        i.count = reinterpret_cast<int32_t*>(next(4));
        i.found = reinterpret_cast<int64_t*>(next(Layout::kMostParts * 8));
        return i;
    }

    // Elements [begin, end) of an image become keys, the best `keep` of them at least; how many, and whether some were
    // dropped. Room for 2 keep and kFound, or for all.
    int64_t collect(int64_t n, int64_t begin, int64_t end, int64_t keep, Key* keys, bool& dropped) const
    {
        int32_t found[Layout::kFound];
        auto const* const x = scores_.as<std::byte>() + n * l_.elements * sizeOf(scores_.type);
        bool const all = keep >= end - begin;
        bool above = a_.aboveLeast;
        float least = least_;
        int64_t count = 0;
        dropped = false;
        for (int64_t at = begin; at < end;) {
            if (!all && count > 2 * keep) {
                std::nth_element(keys, keys + keep - 1, keys + count, std::greater<>());
                count = keep;
                dropped = true;
                least = scoreOf(keys[keep - 1]);
                above = !a_.classesFirst; // in this order, what comes later stands behind its equals
            }
            int64_t const more = collect_(x, at, end, above, least, found, Layout::kFound, &at);
            for (int64_t k = 0; k < more; ++k)
                count += addKey(x, found[k], keys + count);
        }
        return count;
    }
    int addKey(std::byte const* x, int64_t element, Key* to) const
    {
        int64_t tie = element;
        if (a_.background >= 0 || a_.classesFirst) {
            int64_t const kind = element % l_.classes;
            if (kind == a_.background)
                return 0;
            if (a_.classesFirst)
                tie = kind * l_.boxes + element / l_.classes;
        }
        float const score = withFloat(
            scores_.type, [&](auto e) { return loadElement(reinterpret_cast<decltype(e) const*>(x)[element]); });
        *to = keyOf(score, tie);
        return 1;
    }

    void collectPart(int64_t n, int64_t part) const
    {
        Item const item = itemAt(n);
        bool dropped = false;
        int64_t const count = collect(n, l_.elements * part / parts_, l_.elements * (part + 1) / parts_, l_.first,
                                      item.keys + part * l_.room, dropped);
        item.found[part] = dropped ? -count : count;
    }

    void searchItem(int64_t n) const
    {
        Item const item = itemAt(n);
        int64_t count = 0;
        bool dropped = false;
        for (int64_t part = 0; part < parts_; ++part) {
            int64_t const more = std::abs(item.found[part]);
            dropped = dropped || item.found[part] < 0;
            if (part > 0)
                std::copy_n(item.keys + part * l_.room, more, item.keys + count);
            count += more;
        }
        // Where some were dropped, no more than `first` are known to be the best.
        bool const ended =
            suppress(n, item, item.keys, count, dropped || a_.limit > 0 ? std::min(l_.first, count) : count);
        if (!ended && dropped && a_.limit == 0) {
            Key* const keys = item.keys + (l_.keyBytes() / int64_t(sizeof(Key)) - l_.elements);
            count = collect(n, 0, l_.elements, l_.elements, keys, dropped);
            suppress(n, item, keys, count, count);
        }
        if (!a_.rows)
            writeBoxes(n, item);
    }

    float numberAt(TensorRef const& t, int64_t i) const
    {
        return withFloat(t.type, [&](auto e) { return loadElement(t.as<decltype(e)>()[i]); });
    }

    // Two corners, as they go out.
    void decode(int64_t n, int64_t box, int64_t kind, float (&v)[4]) const
    {
        int64_t const at = 4 * ((n * l_.boxes + box) * boxClasses_ + (boxClasses_ > 1 ? kind : 0));
        float anchor[4];
        for (int i = 0; i < 4; ++i) {
            v[i] = numberAt(boxes_, at + i);
            if (anchors_)
                anchor[i] = numberAt(*anchors_, 4 * ((anchors_->dims[0] > 1 ? n * l_.boxes : 0) + box) + i);
        }
        if (a_.coding == Coding::kCorners) {
            if (!anchors_)
                return;
            putInOrder(v);
            putInOrder(anchor);
            for (int i = 0; i < 4; ++i)
                v[i] += anchor[i];
            return;
        }
        if (anchors_)
            for (int i = 0; i < 2; ++i) {
                v[i] = v[i] * anchor[i + 2] + anchor[i];
                v[i + 2] = anchor[i + 2] * float(std::exp(double(v[i + 2])));
            }
        for (int i = 0; i < 2; ++i) {
            float const half = v[i + 2] / 2, centre = v[i];
            v[i] = centre - half;
            v[i + 2] = centre + half;
        }
    }

    Box boxOf(int64_t n, int64_t box, int64_t kind) const
    {
        float v[4];
        decode(n, box, kind, v);
        putInOrder(v);
        float const more = a_.pixels == Pixels::kNone ? 0 : 1;
        return {v[0], v[1], v[2], v[3], areaOf(v[2] - v[0] + more, v[3] - v[1] + more)};
    }

    bool covers(Box const& p, Box const& q) const
    {
        float const more = a_.pixels == Pixels::kAll ? 1 : 0;
        float const low = larger(p.low, q.low), left = larger(p.left, q.left);
        float const high = smaller(p.high, q.high), right = smaller(p.right, q.right);
        bool const meet = low <= high && left <= right;
        float const shared = areaOf((meet ? high - low : 0) + more, (meet ? right - left : 0) + more);
        float const all = p.area + q.area - shared;
        float const overlap = shared > 0 && all > 0 ? shared / all : 0;
        return a_.aboveOverlap ? overlap > overlap_ : overlap >= overlap_;
    }

    // Goes through the best `usable` of the keys until enough boxes stay; whether they do.
    bool suppress(int64_t n, Item const& item, Key* keys, int64_t count, int64_t usable) const
    {
        std::fill_n(item.heads, l_.classes, -1);
        std::fill_n(item.written, 2 * l_.classes, 0);
        int32_t rows = 0, kept = 0;
        int64_t some = 256;
        for (int64_t begin = 0; begin < usable && rows < a_.most; begin += some, some *= 2) {
            some = std::min(some, usable - begin);
            Key *const from = keys + begin, *const to = from + some;
            if (to < keys + count)
                std::nth_element(from, to - 1, keys + count, std::greater<>());
            std::sort(from, to, std::greater<>());
            for (Key const* k = from; k < to && rows < a_.most; ++k) {
                int64_t const tie = tieOf(*k);
                int64_t const box = a_.classesFirst ? tie % l_.boxes : tie / l_.classes;
                int64_t const kind = a_.classesFirst ? tie / l_.boxes : tie % l_.classes;
                if (a_.limitOfClass > 0 && item.seen[kind]++ >= a_.limitOfClass)
                    continue;
                Box const b = boxOf(n, box, kind);
                int32_t other = item.heads[kind];
                while (other >= 0 && !covers(item.kept[other].box, b))
                    other = item.kept[other].next;
                if (other >= 0)
                    continue;
                if (kept < l_.kept) {
                    item.kept[kept] = {b, item.heads[kind]};
                    item.heads[kind] = kept++;
                }
                if (a_.mostOfClass > 0 && item.written[kind]++ >= a_.mostOfClass)
                    continue;
                item.rows[rows][0] = int32_t(box);
                item.rows[rows++][1] = int32_t(kind);
            }
        }
        *item.count = rows;
        return rows == a_.most;
    }

    void writeBoxes(int64_t n, Item const& item) const
    {
        TensorRef const &boxes = args_.outputs[1], &scores = args_.outputs[2];
        args_.outputs[0].as<int32_t>()[n] = *item.count;
        withFloat(boxes.type, [&](auto e) {
            auto* to = boxes.as<decltype(e)>() + 4 * n * a_.most;
            for (int64_t k = 0; k < a_.most; ++k, to += 4) {
                float v[4] = {};
                if (k < *item.count)
                    decode(n, item.rows[k][0], item.rows[k][1], v);
                for (int i = 0; i < 4; ++i)
                    storeElement(to[i], !a_.clips ? v[i] : v[i] > 0 ? smaller(v[i], 1) : 0);
            }
        });
        withFloat(scores.type, [&](auto e) {
            auto* to = scores.as<decltype(e)>() + n * a_.most;
            auto* kind = args_.outputs[3].as<int32_t>() + n * a_.most;
            for (int64_t k = 0; k < a_.most; ++k) {
                bool const is = k < *item.count;
                float score = 0;
                if (is)
                    score = numberAt(scores_, (n * l_.boxes + item.rows[k][0]) * l_.classes + item.rows[k][1]);
                storeElement(to[k], is && a_.sigmoid ? float(1 / (1 + std::exp(-double(score)))) : score);
                kind[k] = is ? item.rows[k][1] : int32_t(a_.noClass);
            }
        });
    }

    void writeRows() const
    {
        int32_t* to = args_.outputs[0].as<int32_t>();
        int32_t* const end = to + 3 * l_.items * a_.most;
        int32_t last[3] = {-1, -1, -1};
        auto write = [&] { to = std::copy_n(last, 3, to); };
        for (int64_t n = 0; n < l_.items; ++n) {
            Item const item = itemAt(n);
            for (int32_t k = 0; k < *item.count; ++k) {
                last[0] = int32_t(n), last[1] = item.rows[k][1], last[2] = item.rows[k][0];
                write();
            }
        }
        while (to < end)
            write();
    }

    Attrs const& a_;
    RunArgs& args_;
    Layout const l_;
    TensorRef const &scores_, &boxes_, *anchors_;
    int64_t const boxClasses_;
    float const least_, overlap_;
    Collect const collect_;
    int64_t const parts_;
};

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return Layout(node.attrsAs<Attrs>(), in[kScores]).bytes();
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    Search(node.attrsAs<Attrs>(), args, plainOf(args.inputs[kScores].type)).run();
    return {};
}

constexpr PlainTactic kPlain{"detection_any_plain_cpu", 1, run, workspace};

Collect vectorsOf(DataType type, kernels::jit::Isa isa)
{
    bool const isWide = isa == kernels::jit::Isa::kAvx512;
    return withFloat(type, [&](auto element) -> Collect {
        if constexpr (sizeof(element) == sizeof(float))
            return isWide ? avx512::kCollectFloat : avx2::kCollectFloat;
        else if constexpr (std::is_same_v<decltype(element), uint16_t>)
            return isWide ? avx512::kCollectHalf : avx2::kCollectHalf;
        else
            return collectPlain<decltype(element)>;
    });
}

class VectorSearch final : public Kernel
{
public:
    VectorSearch(ir::Node const& node, kernels::jit::Isa isa) : node_(node), isa_(isa) {}
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return workspace(node_, in, out);
    }
    Result<void> run(RunArgs& args) const override
    {
        Collect const collect = vectorsOf(args.inputs[kScores].type, isa_);
        Search(node_.attrsAs<Attrs>(), args, collect).run();
        return {};
    }

private:
    ir::Node const& node_;
    kernels::jit::Isa const isa_;
};

constexpr CpuFunctions kVectors{.load = [](CpuTactic const& t, Problem const& p, Config const&, PackedConstants&) {
    return makeKernel<VectorSearch>(*p.node, t.isa());
}};
constexpr CpuTactic kAvx512{"detection_any_vectors_avx512", 1, kernels::jit::Isa::kAvx512, kVectors};
constexpr CpuTactic kAvx2{"detection_any_vectors_avx2", 1, kernels::jit::Isa::kAvx2, kVectors};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::detection
