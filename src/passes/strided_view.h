// SPDX-License-Identifier: Apache-2.0
// A value as a part of another one: what shuffles, slices and gathers of one index leave in place can be read where it
// lies.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tw::passes {

struct StridedView
{
    // Elements of the source that are `stride` apart; 0: one element is repeated.
    struct Run
    {
        ir::Dim size, stride;
    };
    ir::Value* source = nullptr;
    int64_t offset = 0; // in elements
    std::vector<std::vector<Run>>
        dimensions;               // of the value: runs in one another, the last inside; none where it has size 1
    std::vector<ir::Node*> nodes; // between source and value

    ir::Shape sizes() const;
    ir::Dim stride(size_t d) const; // 0 for a size of 1; -1: there is no single one
};

// Through at most `depth` nodes; with depth 0 the value itself. bySizes: through reshapes, too, whose dimensions are an input that inference
// knows.
StridedView viewOf(ir::Value* v, int depth, bool bySizes = false);
void permute(StridedView& view, std::vector<int64_t> const& permutation); // empty: identity
// The same elements in order under other dimensions; false where no runs can say it (the view is damaged then).
bool reshape(StridedView& view, ir::Shape const& target);

// Whether the view is all of a tensor of that shape, in order.
bool isInOrder(StridedView view, ir::Shape const& shape);

// Dimensions of two shapes with the same elements in order that have one volume.
struct ReshapeGroup
{
    std::vector<size_t> from, to;
};
// The smallest ones, in order; dimensions of 1 are in none. None: a dimension would be parted between groups.
std::optional<std::vector<ReshapeGroup>> reshapeGroups(ir::Shape const& from, ir::Shape const& to);

// Nodes that take a part of one axis of a tensor: slices, and gathers of one index by a constant.

// Elements start, start + step, .. of `axis` of input 0, `size` of them and all inside, and all of the other axes. A
// gather of one index of rank 0 drops the axis.
struct Selection
{
    ir::Value* x = nullptr;
    int axis = 0;
    int64_t start = 0, size = 0, step = 1; // step 1 where there is one element
    bool byAttributes = true;              // a slice may have its sizes from an input
};
// None where the node is no such thing, or is one of the whole tensor.
std::optional<Selection> selectionOf(ir::Node const& n);

// What the value is when one looks through nodes that leave elements in their order: reshapes, identities of one type.
ir::Value* rootOf(ir::Value* v);
// A step of one element of an axis whose size is known, whatever shape it has been given.
std::optional<Selection> stepOf(ir::Value* v);

// Replaces concatenations of all steps of a tensor, in order, by the tensor with its axes in another order. Leaves alone
// what the user has wishes for.
//   concat(x[0], x[1], .. x[T - 1])        ->  transpose(x)
Result<bool> joinSelections(ir::Graph& g);

} // namespace tw::passes
