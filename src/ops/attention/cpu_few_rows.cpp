// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cpu_few_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/element.h"
#include "base/round.h"
#include "kernels/cpu/jit/emitter.h"
#include "ops/attention/few_rows.h"

namespace tw::ops::attention {

namespace {

constexpr int64_t kMostRows = 32;          // of queries that share a head of keys and values
constexpr int64_t kAloneBytes = 64 * 1024; // of keys and values: less is not worth a second thread
constexpr int64_t kPartKeys = 4 * kKeyBlock;
static_assert(kRowsOfPage == kPageRows);

// Queries are rows of a head of keys: h0 * Si + i for head h0 of those that share it. A group: up to kMostRows of them.
struct Work
{
    Attrs const& a;
    Geometry const& g;
    int64_t all, rows, chunks, splits; // rows of a head and of a group, groups of a head, parts of the keys

    Work(Attrs const& attrs, Geometry const& geometry, int64_t threads)
        : a(attrs), g(geometry), all(a.headsPerKey * g.rows), rows(std::min(all, kMostRows)),
          chunks(divideUp(all, std::max<int64_t>(rows, 1))), splits(1)
    {
        int64_t const many = groups();
        if (threads > 1 && many > 0 && many % threads != 0 && many < 4 * threads)
            splits = std::clamp<int64_t>(divideUp(4 * threads, many), 1, std::max<int64_t>(g.columns / kPartKeys, 1));
    }
    int64_t groups() const { return g.batch * a.keyHeads() * chunks; }
    struct Group
    {
        int64_t chunk, head, image;
    };
    // Images that share a table follow each other: they read the same keys while these are near.
    Group group(int64_t i) const
    {
        int64_t const rest = i / g.sharing;
        return {rest % chunks, rest / chunks % a.keyHeads(), rest / chunks / a.keyHeads() * g.sharing + i % g.sharing};
    }
    int64_t parts() const { return groups() * splits; }
    // Floats: of a worker's room, and of what a part leaves: y, the highest scores and the sums of its rows.
    int64_t room() const
    {
        return rows * (roundUp(a.size, 16) + kKeyBlock) + divideUp(rows * int64_t(sizeof(FewRow)), 4) + 16;
    }
    int64_t left() const { return rows * (a.valueSize + 2); }
};

// Of rows `first` and on of a head of keys: [count] of them, and the keys that any of them sees.
void beginRows(Work const& w, RunArgs& args, int64_t b, int64_t head, int64_t first, int64_t length, FewRows& f,
               float* q)
{
    Attrs const& a = w.a;
    Geometry const& g = w.g;
    auto const* const mask = elementsOf<float>(args.inputs, g.maskInput);
    auto const* const keep = elementsOf<uint8_t>(args.inputs, g.keepInput);
    auto const* const slopes = elementsOf<float>(args.inputs, g.slopesInput);
    float const scale = float(a.scale) * (a.scales ? elementsOf<float>(args.inputs, g.scalesInput)[head] : 1);
    int64_t from = length, to = 0;
    for (int64_t r = 0; r < f.count; ++r) {
        int64_t const h = head * a.headsPerKey + (first + r) / g.rows, i = (first + r) % g.rows;
        FewRow& row = f.rows[r];
        Keys const keys = keysOf(a, 0, length, g.rows, i);
        row = {keys.from, std::max(keys.to, keys.from), keys.position};
        from = std::min(from, row.from);
        to = std::max(to, keys.to);
        if (mask)
            row.mask = mask + b * g.mask.batch + h * g.mask.head + i * g.mask.row;
        if (keep)
            row.keep = keep + b * g.keep.batch + h * g.keep.head + i * g.keep.row;
        if (slopes)
            row.slope = slopes[h];
        row.highest = -std::numeric_limits<float>::infinity();
        auto const* const x = args.inputs[0].as<float>() + g.q.offset + b * g.q.batch + h * g.q.head + i * g.q.row;
        for (int64_t d = 0; d < a.size; ++d)
            q[r * a.size + d] = x[d] * scale;
    }
    // A page begins in the key block's beginning; what stands in it in front of the first key is of the same sequence, and weighs nothing.
    f.from = a.pages && from < to ? from / kRowsOfPage * kRowsOfPage : from;
    f.to = std::max(to, from);
}

// By the type of a key's elements.
auto attendOf(FewRowsKernels const& k, float)
{
    return k.attend;
}
auto attendOf(FewRowsKernels const& k, uint16_t)
{
    return k.attendHalves;
}
auto attendOf(FewRowsKernels const& k, Bfloat16)
{
    return k.attendBfloats;
}
auto attendOf(FewRowsKernels const& k, int8_t)
{
    return k.attendBytes;
}

} // namespace

bool mayTakeFewRows(kernels::jit::Isa isa, Attrs const& a)
{
    int64_t const width = kernels::jit::vectorWidth(isa);
    return a.size % width == 0 && a.valueSize % width == 0 && !a.segments && !a.roundsScores() && a.weightStep == 0 &&
           !a.integers;
}

bool takesFewRows(kernels::jit::Isa isa, Attrs const& a, Geometry const& g, DataType keys)
{
    return mayTakeFewRows(isa, a) && (isQuantized(keys) || a.table || a.headsPerKey * g.rows <= kMostRows);
}

int64_t fewRowsWorkspace(Attrs const& a, Geometry const& g, int64_t threads)
{
    Work const w(a, g, threads);
    return (threads * w.room() + w.parts() * w.left()) * int64_t(sizeof(float));
}

Result<void> runFewRows(kernels::jit::Isa isa, Attrs const& a, Geometry const& g, int64_t threads, RunArgs& args)
{
    Work const w(a, g, threads);
    auto const& kernels = isa == kernels::jit::Isa::kAvx512 ? avx512::kFewRows : avx2::kFewRows;
    auto const attend = withReal(args.inputs[1].type, [&](auto key) { return attendOf(kernels, key); });
    auto const* const lengths = elementsOf<int32_t>(args.inputs, g.lengthsInput);
    auto const* const sinks = elementsOf<float>(args.inputs, g.sinksInput);
    Table const table = tableOf(g, args.inputs);
    float* const rooms = static_cast<float*>(args.workspace);
    float* const leftovers = rooms + threads * w.room();
    int64_t const element = sizeOf(args.inputs[1].type);
    auto place = [&](int input, Strides const& s, int64_t b, int64_t head) {
        return static_cast<std::byte const*>(args.inputs[size_t(input)].data) +
               (s.offset + b * s.batch + head * s.head) * element;
    };
    // What a head's parts left becomes rows of y.
    auto finish = [&](int64_t group) {
        auto const [chunk, head, b] = w.group(group);
        for (int64_t r = 0; r < std::min(w.rows, w.all - chunk * w.rows); ++r) {
            int64_t const row = chunk * w.rows + r, h = head * a.headsPerKey + row / g.rows, i = row % g.rows;
            float* const y = args.outputs[0].as<float>() + b * g.y.batch + i * g.y.row + h * g.y.head;
            float const* const first = leftovers + group * w.splits * w.left();
            auto part = [&](int64_t s) { return first + s * w.left(); };
            auto highestOf = [&](int64_t s) { return part(s)[w.rows * a.valueSize + r]; };
            auto sumOf = [&](int64_t s) { return part(s)[w.rows * (a.valueSize + 1) + r]; };
            Keys const keys = keysOf(a, 0, lengthOf(lengths, b, g.columns), g.rows, i);
            if (keys.from >= keys.to) {
                std::fill_n(y, a.valueSize, 0.0F);
                continue;
            }
            float highest = sinks ? sinks[h] : -std::numeric_limits<float>::infinity();
            for (int64_t s = 0; s < w.splits; ++s)
                highest = std::max(highest, highestOf(s)); // of a part that saw nothing it is -infinity
            float const scale = a.scales ? elementsOf<float>(args.inputs, g.scalesInput + 1)[head] : 1;
            // All of it hidden: 0 / 0, as without parts.
            float sum = sinks ? std::exp(sinks[h] - highest) : 0;
            for (int64_t s = 0; s < w.splits; ++s)
                if (sumOf(s) != 0)
                    sum += sumOf(s) * std::exp(highestOf(s) - highest);
            for (int64_t s = 0, n = 0; s < w.splits; ++s) {
                if (sumOf(s) == 0 && (n > 0 || s + 1 < w.splits))
                    continue;
                float const factor = (w.splits == 1 && !sinks ? scale : scale * std::exp(highestOf(s) - highest)) / sum;
                float const* const from = part(s) + r * a.valueSize;
                for (int64_t d = 0; d < a.valueSize; ++d)
                    y[d] = (n > 0 ? y[d] : 0) + from[d] * factor;
                ++n;
            }
        }
    };
    auto body = [&](int64_t p, int worker) {
        int64_t const split = p % w.splits, group = p / w.splits;
        auto const [chunk, head, b] = w.group(group);
        float* const room = rooms + worker * w.room();
        float* const left = leftovers + p * w.left();
        FewRows f;
        f.count = std::min(w.rows, w.all - chunk * w.rows);
        float* const q = room;
        f.scores = q + roundUp(w.rows * a.size, 16);
        f.rows = reinterpret_cast<FewRow*>(f.scores + w.rows * kKeyBlock);
        f.q = q;
        f.size = a.size;
        f.valueSize = a.valueSize;
        f.k = place(1, g.k, a.pages ? 0 : table.first(b), head);
        f.v = place(2, g.v, a.pages ? 0 : table.first(b), head);
        if (w.splits == 1 && args.workers->count() == 1 && head + 1 < a.keyHeads() && (chunk + 1) * w.rows >= w.all) {
            f.kNext = place(1, g.k, a.pages ? 0 : table.first(b), head + 1);
            f.vNext = place(2, g.v, a.pages ? 0 : table.first(b), head + 1);
        }
        f.images = table.of(b);
        f.pages = table.pagesOf(b);
        f.blocks = g.blocks;
        f.sharing = g.sharing;
        f.kImage = g.k.batch;
        f.vImage = g.v.batch;
        f.kStride = g.k.row;
        f.vStride = g.v.row;
        f.rules = {float(a.softcap), float(a.fill), a.keepInverted};
        f.y = left;
        std::fill_n(left, w.rows * a.valueSize, 0.0F);
        beginRows(w, args, b, head, chunk * w.rows, lengthOf(lengths, b, g.columns), f, q);
        int64_t const step = roundUp(divideUp(f.to - f.from, w.splits), kKeyBlock), all = f.to;
        f.from = std::min(f.from + split * step, all);
        f.to = std::min(f.from + step, all);
        attend(f);
        for (int64_t r = 0; r < f.count; ++r) {
            left[w.rows * a.valueSize + r] = f.rows[r].highest;
            left[w.rows * (a.valueSize + 1) + r] = f.rows[r].sum;
        }
        if (w.splits == 1)
            finish(group);
    };
    int64_t const bytes = g.batch * a.keyHeads() * g.columns * (a.size + a.valueSize) * element;
    if (args.workers->count() > threads || bytes < kAloneBytes) // more workers than there is room for
        for (int64_t p = 0; p < w.parts(); ++p)
            body(p, 0);
    else
        args.workers->run(w.parts(), body);
    if (w.splits > 1)
        for (int64_t group = 0; group < w.groups(); ++group)
            finish(group);
    return {};
}

} // namespace tw::ops::attention
