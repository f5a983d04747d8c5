// SPDX-License-Identifier: Apache-2.0
// Shape tensors of a graph: values whose elements decide the shape of something, outputs that are marked as host
// values, and all that those are computed from.
#pragma once

#include <set>

#include "ir/graph.h"

namespace tw::ir {

std::set<Value const*> shapeValues(Graph const& g);

} // namespace tw::ir
