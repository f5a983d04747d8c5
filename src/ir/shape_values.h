// SPDX-License-Identifier: Apache-2.0
// Shape tensors of a graph: values whose elements decide the shape of something, outputs that are marked as host
// values, and all that those are computed from (developer guide, "Formal inference rules"). Most layers compute no
// shapes: what one of them makes is copied to the host where a shape wants it, and its inputs stay where they are,
// unless dimensions and constants alone decide them. So it is with what is too large for a shape.
#pragma once

#include <set>

#include "base/result.h"
#include "ir/graph.h"

namespace tw::ir {

// Whether the elements of input `i` decide shapes (OpDef::isShapeInput): the input is a shape tensor.
bool isShapeInput(Node const& node, size_t i);

// All shape tensors, and those of them that stand on the host: no layer of the device makes them.
std::set<Value const*> shapeValues(Graph const& g);
std::set<Value const*> hostValues(Graph const& g);

// Elements of inputs that are no shape tensors (Value::host) are known to nobody before the run: what is known of them by
// symbols goes, and what follows from it, so that no pass makes shapes, or counts of loops that the host knows, of them.
Result<void> forgetContentsOfData(Graph& g);

// A node whose work is done there: it makes a host value, or nothing at all (an assertion about shape tensors).
bool isOnHost(Node const& node);

} // namespace tw::ir
