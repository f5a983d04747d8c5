// SPDX-License-Identifier: Apache-2.0
// Shape tensors of a graph: values whose elements decide the shape of something, and all that those are computed from.
#pragma once

#include <set>

#include "ir/graph.h"

namespace tw::ir {

std::set<Value const*> shapeValues(Graph const& g);

} // namespace tw::ir
