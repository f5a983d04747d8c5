// SPDX-License-Identifier: Apache-2.0
// What passes share that make one node of several: whether they may, and the replacement with its body.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "passes/rewrite.h"

namespace tw::passes {

// An input of the fused node; `original` is what the replaced nodes read, the same elements in the same order, perhaps
// of another floating type.
struct FusedInput
{
    ir::Value* value;
    ir::Value* original;
};

// Nodes in execution order, without repetitions.
void sortNodes(ir::Graph const& g, std::vector<ir::Node*>& nodes);
// Whether nobody but these nodes reads what they make, the last node's output apart, and the wishes of the user agree.
bool canFuse(ir::Graph const& g, std::vector<ir::Node*> const& nodes);
// Puts a node of `op` in the place of `nodes` (sorted). Its output has the elements of the last node's output in the
// same order; where the shape differs, a reshape follows. Constants that are no inputs are copied into the body. Nodes
// that others read stay.
Result<ir::Node*> fuseNodes(ir::Graph& g, std::vector<ir::Node*> const& nodes, ir::OpDef const& op,
                            std::unique_ptr<ir::AttrsBase> attrs, std::vector<FusedInput> const& inputs);

// Gives `fused` the origins of `nodes` (sorted) and the wishes for them, and the place of the last one's output: its
// name and those who read it.
void takeOver(ir::Graph& g, ir::Node& fused, std::vector<ir::Node*> const& nodes);
// The same, and `nodes` go.
void replaceNodes(ir::Graph& g, std::vector<ir::Node*> const& nodes, ir::Node& fused);
// "a + b", for the log.
std::string namesOf(std::vector<ir::Node*> const& nodes);

// A node before `position` that gives `v` another shape with the same elements; null when the shape cannot be said
// by attributes.
Result<ir::Value*> addReshape(ir::Graph& g, ir::Value* v, ir::Shape const& shape, int position);

// The number that all elements of a constant are; a constant that refit reaches only when nothing may be refitted.
std::optional<double> numberOf(ir::Value const* v, recipe::Recipes const* refit);
// The only element of an i32, of a constant likewise or as inference knows it.
std::optional<ir::Dim> onlyElementOf(ir::Value const* v, recipe::Recipes const* refit);
// x * x, or x to the power of 2.
bool isSquare(ir::Node const* n, recipe::Recipes const* refit);
// The constant's elements as a vector.
ir::Value* asVector(ir::Graph& g, ir::Value const& v);
// Zeros in place of a bias that is missing.
ir::Value* zeroBias(ir::Graph& g, ir::Value const& kernel, int64_t count);
// A constant with more leading dimensions of 1.
ir::Value* withRank(ir::Graph& g, ir::Value const& v, int rank);
// A constant all dimensions of which but the last `count` are 1.
bool isConstantOf(ir::Value const& v, int count);

} // namespace tw::passes
