// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

#include "base/element.h"
#include "base/round.h"
#include "ops/topk/kernels.h"
#include "ops/topk/op.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::topk {

namespace {

// NaN becomes a number above +inf, so that one comparison orders all; for the smallest, keys are negated.
struct Entry
{
    float key; // larger is better
    int32_t rank;
    int32_t index;
};
bool better(Entry const& a, Entry const& b)
{
    if (a.rank != b.rank)
        return a.rank > b.rank;
    return a.key != b.key ? a.key > b.key : a.index < b.index;
}

template <class T>
Entry entryOf(T v, int64_t index, bool largest)
{
    float const f = loadElement(v);
    if (f != f)
        return Entry{0, largest ? 1 : -1, int32_t(index)};
    return Entry{largest ? f : -f, 0, int32_t(index)};
}

// The best k so far stand in a heap with the worst of them on top.
template <class T>
void select(Attrs const& a, TensorRef const& x, TensorRef const& values, TensorRef const& indices, Entry* heap)
{
    int const axis = int(a.axis);
    bool const largest = a.kind == Kind::kMax;
    int64_t const n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank), k = a.k;
    for (int64_t o = 0; o < x.dims.volume(0, axis); ++o)
        for (int64_t i = 0; i < inner; ++i) {
            T const* from = x.as<T>() + o * n * inner + i;
            for (int64_t j = 0; j < k; ++j)
                heap[j] = entryOf(from[j * inner], j, largest);
            std::make_heap(heap, heap + k, better);
            for (int64_t j = k; j < n; ++j) {
                Entry const e = entryOf(from[j * inner], j, largest);
                if (!better(e, heap[0]))
                    continue;
                std::pop_heap(heap, heap + k, better);
                heap[k - 1] = e;
                std::push_heap(heap, heap + k, better);
            }
            std::sort_heap(heap, heap + k, better);
            T* value = values.as<T>() + o * k * inner + i;
            int32_t* index = indices.as<int32_t>() + o * k * inner + i;
            for (int64_t j = 0; j < k; ++j) {
                value[j * inner] = from[heap[j].index * inner];
                index[j * inner] = heap[j].index;
            }
        }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &values = args.outputs[0], &indices = args.outputs[1];
    auto* heap = static_cast<Entry*>(args.workspace);
    withReal(x.type, [&](auto element) { select<decltype(element)>(a, x, values, indices, heap); });
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const>, std::span<TensorRef const>)
{
    return node.attrsAs<Attrs>().k * int64_t(sizeof(Entry));
}

constexpr PlainTactic kPlain{"topk_any_plain_cpu", 1, run, workspace};

// An element's key above its index inverted: of two, the larger one stands first in the result.
using Order = uint64_t;
Order orderOf(float f, int64_t index, bool smallest)
{
    uint32_t const bits = f != f ? 0x7fffffffu : std::bit_cast<uint32_t>(f == 0 ? 0.f : f);
    uint32_t const key = bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u); // unsigned order is that of the floats
    return Order(smallest ? ~key : key) << 32 | uint32_t(~index);
}
int64_t indexOf(Order o)
{
    return ~uint32_t(o);
}

template <class T>
Kernels const& kernelsOf(kernels::jit::Isa isa)
{
    bool const wide = isa == kernels::jit::Isa::kAvx512;
    if constexpr (sizeof(T) == 4)
        return wide ? avx512::kTopkFloat : avx2::kTopkFloat;
    else if constexpr (sizeof(T) == 2)
        return wide ? avx512::kTopkHalf : avx2::kTopkHalf;
    else
        return wide ? avx512::kTopkInt8 : avx2::kTopkInt8;
}

// What one worker needs: candidates (indices) as they are found, the best so far, extremes of lanes, and columns as
// contiguous rows.
struct Scratch
{
    static constexpr int64_t kFound = 1024, kColumns = 16, kColumnBytes = 32 << 10, kMostWidth = 16;

    int32_t* found;
    Order *best, *spare;
    float* lane;
    std::byte* rows;

    // The best k and a batch of candidates; or all of a short row.
    static int64_t mostBest(int64_t k) { return 2 * k + kFound + 2 * kMostWidth; }
    static int64_t mostLanes(int64_t k) { return 2 * k + 5 * kMostWidth; }
    static int64_t columnsAtOnce(int64_t n, int64_t inner, int64_t elementBytes)
    {
        int64_t const most = std::min(inner, kColumns);
        return std::clamp<int64_t>(kColumnBytes / std::max<int64_t>(n * elementBytes, 1), 1, most);
    }
    static int64_t bytes(int64_t k, int64_t n, int64_t inner, int64_t elementBytes)
    {
        int64_t const rows = inner > 1 && k > 1 ? std::max(kColumnBytes, n * elementBytes) : 0;
        return roundUp(mostBest(k) * 16 + (mostLanes(k) + kFound) * 4 + rows, 64);
    }
    Scratch(std::byte* at, int64_t k)
        : best(reinterpret_cast<Order*>(at)), rows(at + mostBest(k) * 16 + (mostLanes(k) + kFound) * 4)
    {
        spare = best + mostBest(k);
        lane = reinterpret_cast<float*>(spare + mostBest(k));
        found = reinterpret_cast<int32_t*>(lane + mostLanes(k));
    }
};

// The best k of a row x of n, in scratch.best, best first.
template <class T>
class RowSelection
{
public:
    RowSelection(Kernels const& kernels, bool smallest, int64_t k, int64_t n, Scratch const& scratch)
        : kernels_(kernels), smallest_(smallest), k_(k), n_(n), s_(scratch)
    {
        auto const up = [&](int64_t v) { return roundUp(v, kernels.width); };
        few_ = k <= fewOf(kernels.width) && n >= 4 * kernels.width;
        lanes_ = up(std::max(2 * k, 4 * kernels.width));
        if (4 * lanes_ > n)
            lanes_ = up(k);
        if (2 * lanes_ > n)
            lanes_ = 0;
    }

    void run(T const* x)
    {
        count_ = 0;
        inOrder_ = true;
        if (few_) {
            search(x, kernels_.thresholdOfFew(x, n_, smallest_, k_));
        } else if (lanes_ == 0) {
            for (; count_ < n_; ++count_)
                s_.best[count_] = orderOf(loadElement(x[count_]), count_, smallest_);
        } else {
            // k lanes have elements that are not worse than the k-th best of the lanes' extremes.
            kernels_.extremes(x, n_, smallest_, s_.lane, lanes_);
            if (smallest_)
                std::nth_element(s_.lane, s_.lane + k_ - 1, s_.lane + lanes_);
            else
                std::nth_element(s_.lane, s_.lane + k_ - 1, s_.lane + lanes_, std::greater<>());
            search(x, s_.lane[k_ - 1]);
        }
        if (count_ > kRadixFrom)
            return sortByDigits();
        if (count_ > 2 * k_)
            keepBest();
        std::sort(s_.best, s_.best + count_, std::greater<>());
    }

private:
    // More than so many are sorted by digits.
    static constexpr int64_t kRadixFrom = 128;

    // Digits of eight bits, the last one first; those that all have in common cost nothing but counting.
    void sortByDigits()
    {
        Order *from = s_.best, *to = s_.spare;
        for (int shift = inOrder_ ? 32 : 0; shift < 64; shift += 8) {
            int32_t begin[256] = {};
            for (int64_t i = 0; i < count_; ++i)
                ++begin[255 - (from[i] >> shift & 255)];
            if (begin[255 - (from[0] >> shift & 255)] == count_)
                continue;
            int32_t at = 0;
            for (int32_t& b : begin)
                at += std::exchange(b, at);
            for (int64_t i = 0; i < count_; ++i)
                to[begin[255 - (from[i] >> shift & 255)]++] = from[i];
            std::swap(from, to);
        }
        if (from != s_.best)
            std::copy_n(from, k_, s_.best);
    }

    void search(T const* x, float threshold)
    {
        scan(x, smallest_ ? Pass::kNotAbove : Pass::kNotBelow, threshold);
        if (count_ < k_) // there are NaNs among the smallest
            scan(x, Pass::kNotBelow, -std::numeric_limits<float>::infinity());
    }

    void keepBest()
    {
        std::nth_element(s_.best, s_.best + k_ - 1, s_.best + count_, std::greater<>());
        count_ = k_;
        inOrder_ = false;
    }

    void scan(T const* x, Pass pass, float threshold)
    {
        int64_t const most = Scratch::mostBest(k_);
        count_ = 0;
        for (int64_t at = 0; at < n_;) {
            int64_t const room = std::min(Scratch::kFound, most - count_);
            int64_t const more = kernels_.collect(x, at, n_, pass, threshold, s_.found, room, &at);
            for (int64_t i = 0; i < more; ++i)
                s_.best[count_++] = orderOf(loadElement(x[s_.found[i]]), s_.found[i], smallest_);
            if (at >= n_ || most - count_ >= Scratch::kFound)
                continue;
            // What comes later must be better than the worst: of equal ones the first stand before.
            keepBest();
            float const worst = loadElement(x[indexOf(s_.best[k_ - 1])]);
            threshold = worst;
            if (worst != worst && !smallest_)
                return;
            pass = smallest_ ? Pass::kBelow : Pass::kAbove;
            if (worst != worst) {
                pass = Pass::kNotAbove;
                threshold = std::numeric_limits<float>::infinity();
            }
        }
    }

    Kernels const& kernels_;
    bool smallest_;
    bool few_ = false, inOrder_ = true; // of their indices
    int64_t k_, n_, lanes_ = 0, count_ = 0;
    Scratch const& s_;
};

class VectorTopk final : public Kernel
{
public:
    VectorTopk(ir::Node const& node, kernels::jit::Isa isa, int threads)
        : node_(node), a_(node.attrsAs<Attrs>()), isa_(isa), threads_(threads)
    {}
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        return threads_ * scratchBytes(in[0]);
    }
    Result<void> run(RunArgs& args) const override
    {
        if (args.outputs[0].count() == 0)
            return {};
        if (args.inputs[0].count() > INT32_MAX) // in a profile of larger shapes
            return topk::run(node_, args);
        withReal(args.inputs[0].type, [&](auto element) { select<decltype(element)>(args); });
        return {};
    }

private:
    int64_t scratchBytes(TensorRef const& x) const
    {
        int const axis = int(a_.axis);
        return Scratch::bytes(a_.k, x.dims[axis], x.dims.volume(axis + 1, x.dims.rank), sizeOf(x.type));
    }

    // Units of some columns (rows where there are no others) of one x[o], distributed.
    template <class T>
    void select(RunArgs& args) const
    {
        TensorRef const &x = args.inputs[0], &values = args.outputs[0], &indices = args.outputs[1];
        int const axis = int(a_.axis);
        bool const smallest = a_.kind == Kind::kMin;
        int64_t const n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank), k = a_.k;
        int64_t const outer = x.dims.volume(0, axis);
        bool const best = k == 1 && inner > 1;
        constexpr int64_t kBestColumns = 1024;
        int64_t const some = best ? std::min(inner, kBestColumns) : Scratch::columnsAtOnce(n, inner, sizeof(T));
        int64_t const pieces = divideUp(inner, some), units = outer * pieces;
        Kernels const& kernels = kernelsOf<T>(isa_);

        auto const unit = [&](int64_t u, Scratch const& scratch) {
            int64_t const o = u / pieces, first = u % pieces * some, columns = std::min(some, inner - first);
            T const* from = x.as<T>() + o * n * inner + first;
            T* value = values.as<T>() + o * k * inner + first;
            int32_t* index = indices.as<int32_t>() + o * k * inner + first;
            if (best) {
                kernels.bestOfColumns(from, n, inner, columns, smallest, index);
                for (int64_t c = 0; c < columns; ++c)
                    value[c] = from[index[c] * inner + c];
                return;
            }
            T const* row = from;
            if (inner > 1) {
                T* rows = reinterpret_cast<T*>(scratch.rows);
                for (int64_t j = 0; j < n; ++j)
                    for (int64_t c = 0; c < columns; ++c)
                        rows[c * n + j] = from[j * inner + c];
                row = rows;
            }
            RowSelection<T> selection(kernels, smallest, k, n, scratch);
            for (int64_t c = 0; c < columns; ++c, row += n) {
                selection.run(row);
                for (int64_t j = 0; j < k; ++j) {
                    int64_t const at = indexOf(scratch.best[j]);
                    value[j * inner + c] = row[at];
                    index[j * inner + c] = int32_t(at);
                }
            }
        };

        // A part should last longer than it takes to hand it over (about a microsecond).
        constexpr int64_t kPartBytes = 16 << 10;
        Workers& workers = args.workers->count() <= threads_ ? *args.workers : serialWorkers();
        int64_t const bytes = x.count() * int64_t(sizeof(T)), each = scratchBytes(x);
        int64_t const most = workers.count() < 2 ? 1 : std::max<int64_t>(bytes / kPartBytes, 1);
        int64_t const parts = std::min({units, most, int64_t(workers.count()) * 4});
        workers.run(parts, [&](int64_t part, int worker) {
            Scratch const scratch(static_cast<std::byte*>(args.workspace) + each * worker, k);
            for (int64_t u = units * part / parts; u < units * (part + 1) / parts; ++u)
                unit(u, scratch);
        });
    }

    ir::Node const& node_;
    Attrs const& a_;
    kernels::jit::Isa isa_;
    int threads_;
};

Support supportsVectors(CpuTactic const& t, Problem const& p)
{
    if (Support const types = takesOnly(DataType::kHalf, p); isNarrowFloat(p.inputs[0].type) && !types.ok)
        return types;
    return supportsPositions(t, p);
}

constexpr CpuFunctions kVectors{.supports = supportsVectors,
                                .load = [](CpuTactic const& t, Problem const& p, Config const&, PackedConstants&) {
                                    return makeKernel<VectorTopk>(*p.node, t.isa(), std::max(p.threads, 1));
                                }};
constexpr CpuTactic kAvx512{"topk_any_vectors_avx512", 1, kernels::jit::Isa::kAvx512, kVectors};
constexpr CpuTactic kAvx2{"topk_any_vectors_avx2", 1, kernels::jit::Isa::kAvx2, kVectors};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::topk
