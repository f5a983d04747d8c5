// SPDX-License-Identifier: Apache-2.0
// What kind of node passes look at. None is one where there is no node.
#pragma once

#include "ir/graph.h"
#include "ops/elementwise/op.h"
#include "ops/unary/op.h"

namespace tw::passes {

bool is(ir::Node const* n, ops::elementwise::Operation operation);
bool is(ir::Node const* n, ops::unary::Operation operation);
// A shuffle that transposes nothing, to a shape that its attributes say.
bool isReshape(ir::Node const* n);

} // namespace tw::passes
