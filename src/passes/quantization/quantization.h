// SPDX-License-Identifier: Apache-2.0
// What the passes of INT8 share: how a value is quantized, and which nodes give integers the way they give numbers.
#pragma once

#include <optional>
#include <vector>

#include "families/elementwise/epilogue.h"
#include "ir/graph.h"
#include "passes/pass.h"

namespace tw::passes {

// A node of sums that could take integers as factors: a convolution or a product without norm and gate, whose sums 32 bits
// hold.
bool maySumIntegers(ir::Node const& n);

// A node of sums that takes them.
bool sumsIntegers(ir::Node const& n);
// The weights' dimension that is the output channels; -1: there is none.
int channelAxis(ir::Node const& n);
// Of attributes of a node of sums.
ops::Epilogue& epilogueOf(ir::AttrsBase& attrs, ir::Node const& n);

bool isQuantize(ir::Node const* n);
bool isDequantize(ir::Node const* n);

// A value that a dequantize makes of integers: value = integers * scale, one scale or one along `axis`.
struct Dequantized
{
    ir::Node* node = nullptr;
    ir::Value* integers = nullptr;
    ir::Value* scale = nullptr;
    int axis = -1;

    bool isPerTensor() const { return axis < 0; }
};
std::optional<Dequantized> dequantizedOf(ir::Value const* v);

// Whether a quantize has one scale for the whole tensor.
bool isPerTensor(ir::Node const& quantize);

// The one number of two constant scales is the same.
bool haveSameScale(ir::Value const& a, ir::Value const& b);
// A rewrite stands on the equal scales of two such nodes: refits that make them differ are refused, naming both.
Result<void> relyOnEqualScales(ir::Node const& a, ir::Node const& b, PassContext const& ctx);
// Refits may give these nodes positive finite scales alone.
Result<void> relyOnPositiveScales(ir::Graph const& g, PassContext const& ctx);
Result<void> relyOnPositiveScale(ir::Node const& n, PassContext const& ctx);

// Whether the node only brings elements of input 0 (of all inputs: concatenations) to other places, or chooses the largest,
// so that it may stand before or after a multiplication by one positive number. Padding and fills are zeros then.
bool movesElements(ir::Node const& n);
// How many inputs, from the first on, it takes elements from.
size_t movedInputs(ir::Node const& n);

// The integers' node in the place of `n`, which has been computed on dequantized inputs or is read by a quantize: the same
// attributes on other inputs.
Result<ir::Node*> addAlike(ir::Graph& g, ir::Node const& n, std::vector<ir::Value*> inputs, int position);

} // namespace tw::passes
