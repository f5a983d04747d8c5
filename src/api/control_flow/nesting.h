// SPDX-License-Identifier: Apache-2.0
// How the loops and conditionals of a network nest. Nobody says it: a layer is inside every construct whose entering
// layers (recurrences, iterators, conditional inputs) it depends on, until a loop output or conditional output leaves
// it; a construct is inside another when one of its layers is.
#pragma once

#include <map>
#include <set>

#include "api/network/network.h"

namespace tw::api::control_flow {

// Place of one construct among the others.
struct Place
{
    int parent = -1; // innermost construct around it; -1: none
    bool isLive = false;
    // Tensors from around that layers in it use, in the order of the layers: what its regions capture.
    std::vector<TensorObject*> captures;
    // Tensors from around that its boundary layers take: initial values, counts, conditions, ...
    std::vector<TensorObject*> entries;
};

struct Nesting
{
    std::vector<Place> places; // by Construct::index
    // Innermost construct that a tensor is inside of; those outside of all are left out.
    std::map<TensorObject const*, int> homes;
    std::set<LayerState const*> liveLayers; // that a network output depends on

    int homeOf(TensorObject const& t) const
    {
        auto const it = homes.find(&t);
        return it == homes.end() ? -1 : it->second;
    }
    // Where the layer is: with its outputs, or, without any (an assertion), with the innermost of its inputs.
    int homeOf(LayerState const& l) const;
    bool live(LayerState const& l) const { return liveLayers.contains(&l); }
};

// Layers that are there for what they do: they have no outputs and are no part of a construct.
inline bool isSink(LayerState const& l)
{
    return l.outputs.empty() && !l.construct;
}

// `order`: all layers with outputs, those that a layer reads before it (next values of recurrences aside). Refuses what
// does not nest, and constructs that are not complete.
Result<Nesting> findNesting(NetworkObject const& network, std::vector<LayerState*> const& order);

// Whether shape arithmetic knows all elements of a value (INT32 or boolean) that is no constant: they depend on no input.
bool isKnown(ir::Value const& v);

// Shape tensors: the lengths of stacked loop outputs, and counts of trips that are known when shapes are. A count that
// elements of network inputs decide is none (8.5 takes it from the binding, without a profile), unless it is the length
// of a stack, too, or a profile bounds one of those inputs (`given`). readByRun() gives these inputs.
std::vector<TensorObject const*> shapeInputs(NetworkObject const& network, InputNames const& given);
std::set<TensorObject const*> readByRun(NetworkObject const& network, InputNames const& given);

// A tensor that the layer's dimensions depend on beside its inputs: the count of the loop, for a stacked output without
// a length of its own. Null: none.
TensorObject* alsoNeeds(LayerState const& l);

// What a boundary layer does with its input `index`.
enum class Crossing
{
    kEnters, // taken from around the construct
    kLeaves, // taken from inside, or from around as it is
};
Crossing crossingOf(LayerState const& boundary, size_t index);
// Whether the layer's output is seen around its construct.
bool isExit(LayerState const& l);

} // namespace tw::api::control_flow
