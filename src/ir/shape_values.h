// SPDX-License-Identifier: Apache-2.0
// Shape tensors of a graph: values whose elements decide the shape of something, outputs that are marked as host
// values, and all that those are computed from.
#pragma once

#include <set>

#include "ir/graph.h"

namespace tw::ir {

// Whether the elements of input `i` decide shapes (OpDef::shapeInputs): the input is a shape tensor, on the host.
bool isShapeInput(Node const& node, size_t i);

std::set<Value const*> shapeValues(Graph const& g);

} // namespace tw::ir
