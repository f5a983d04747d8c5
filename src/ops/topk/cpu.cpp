// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/element.h"
#include "ops/tactic.h"
#include "ops/topk/op.h"

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
    if (x.type == DataType::kFloat)
        select<float>(a, x, values, indices, heap);
    else if (x.type == DataType::kHalf)
        select<uint16_t>(a, x, values, indices, heap);
    else
        select<int8_t>(a, x, values, indices, heap);
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const>, std::span<TensorRef const>)
{
    return node.attrsAs<Attrs>().k * int64_t(sizeof(Entry));
}

constexpr PlainTactic kPlain{"topk_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::topk
