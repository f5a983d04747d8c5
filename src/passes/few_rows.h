// SPDX-License-Identifier: Apache-2.0
// Steps of decoders: tensors that have one row for each sequence, for which products have kernels of their own.
#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace tw::passes {

// Whether there are at most 16 rows, of all dimensions but the last one, in the first optimization profile, for which the graph is made.
bool hasFewRows(ir::Graph const& g, ir::Shape const& x, PassContext const& ctx);

} // namespace tw::passes
