// SPDX-License-Identifier: Apache-2.0
// What passes share: replacing values without touching what the user sees, joining two nodes into one, and small
// questions about constants.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/tensor.h"
#include "passes/pass.h"

namespace tw::passes {

// Uses of `from` become uses of `to`. A graph output keeps its name: where `from` is one, `to` takes the name over,
// which only works when a node makes `to` and it is no output itself. False, and nothing changed, when it cannot be.
bool replaceValue(ir::Graph& g, ir::Value* from, ir::Value* to);

// The node that makes `v` when nobody else reads it (no other use, no graph output); else null.
ir::Node* onlyProducer(ir::Graph const& g, ir::Value const* v);
// Runs `change` on the nodes of the graph that are `wanted` before the first of them is changed, in order of execution or
// against it; what an earlier one took is left out. Whether any of them changed the graph.
enum class Order
{
    kOfExecution,
    kFromTheEnd,
};
template <class Wanted, class Change>
Result<bool> changeEach(ir::Graph& g, Wanted const& wanted, Change const& change, Order order = Order::kOfExecution)
{
    std::vector<ir::Node*> list;
    for (auto const& n : g.nodes)
        if (wanted(*n))
            list.push_back(n.get());
    if (order == Order::kFromTheEnd)
        std::ranges::reverse(list);
    bool changed = false;
    for (ir::Node* n : list) {
        if (std::ranges::none_of(g.nodes, [&](auto const& m) { return m.get() == n; }))
            continue;
        TW_ASSIGN(bool const isOne, change(*n));
        changed = changed || isOne;
    }
    return changed;
}
// The same, and what nobody uses then is gone.
template <class Wanted, class Change>
Result<bool> rewriteEach(ir::Graph& g, Wanted const& wanted, Change const& change, Order order = Order::kOfExecution)
{
    auto changed = changeEach(g, wanted, change, order);
    if (changed.ok() && *changed)
        g.eraseUnusedValues();
    return changed;
}
bool isLoop(ir::Node const& n);

// A constant like another, of other elements.
ir::Value* constantWith(ir::Graph& g, ir::Value const& like, DataType type, Extents const& dims, BlobPtr data);

// Whether the user's wishes let `first` and the node that reads it become one: precision and device are those of either
// or the same, the type between them is as it was made, or was to be narrower than FP32.
bool canJoin(ir::Node const& first, ir::Node const& second);
// Whether the user has a wish for the node.
bool hasWish(ir::Node const& n);
// Gives `node` the name, layers and wishes of both. (`node` may be one of the two.)
void joinOrigins(ir::Node& node, ir::Node const& first, ir::Node const& second);
// Gives `node` layers and wishes of all of `nodes`, which do the same and become one; null ones are left out.
void joinAlike(ir::Node& node, std::vector<ir::Node const*> const& nodes);
// Gives `node`, which takes the place of `from`, its layers and wishes.
void takePlaceOf(ir::Node& node, ir::Node const& from);
// Nodes of `g` itself that read `v`, in order of execution.
std::vector<ir::Node*> readersOf(ir::Graph const& g, ir::Value const* v);
// The node that reads the one output of `n` when nobody else does (no other use, no graph output, no inner graph); else
// null.
ir::Node* nextOf(ir::Graph const& g, ir::Node const* n);

// Elements of a constant; an empty reference for any other value. What a pass decides by them is fixed for refits; what it only
// computes new constants of, with a recipe, it takes by elementsOf().
TensorRef constantOf(ir::Value const* v);
TensorRef elementsOf(ir::Value const* v);
// Whether two values are one, or constants of the same type, shape and bytes. (Both may be null.)
bool areSame(ir::Value const* a, ir::Value const* b);
// Whether all elements of a constant are `wanted`; true for a value that is not there.
bool allEqual(ir::Value const* v, double wanted);
// A constant that refit must reach: nothing may be decided by its elements. (What others are decided by, refit reaches
// no longer: recipe/recipes.h.)
bool refitReaches(ir::Value const& v, recipe::Recipes const* refit);

// Attribute dimensions for a shuffle that give `target` out of `from` whatever the symbols are: numbers, 0 where the
// dimension is that of `from`, at most one -1. `placeholder`: what zeroIsPlaceholder must be.
struct ReshapeDims
{
    std::vector<int64_t> dims;
    bool placeholder = true;
};
std::optional<ReshapeDims> reshapeDims(ir::Graph const& g, ir::Shape const& from, ir::Shape const& target);
} // namespace tw::passes
