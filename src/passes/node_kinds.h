// SPDX-License-Identifier: Apache-2.0
// What kind of node passes look at. None is one where there is no node.
#pragma once

#include "ir/graph.h"
#include "ops/elementwise/op.h"
#include "ops/unary/op.h"

namespace tw::passes {

bool is(ir::Node const* n, ops::elementwise::Operation operation);
bool is(ir::Node const* n, ops::unary::Operation operation);
// A shuffle to a shape that its attributes say, and one that transposes nothing.
bool isShuffle(ir::Node const* n);
bool isReshape(ir::Node const* n);
// A conversion between floating types.
bool isCast(ir::Node const* n);

// What `v` is in front of reshapes, of conversions.
ir::Value* beforeReshapes(ir::Value* v);
ir::Value* beforeCasts(ir::Value* v);
// Whether the node has input i.
bool hasInput(ir::Node const& n, size_t i);
// What `v` repeats along all dimensions but `axis`, which has all of that one and 1 of the others; else null.
ir::Value* repeatedBut(ir::Value const* v, size_t axis);
// The other operand of a commutative node.
ir::Value* otherInput(ir::Node const* n, ir::Value const* v);

} // namespace tw::passes
