// SPDX-License-Identifier: Apache-2.0
// Runs recipes. Nodes that large weights go through have loops of their own, which give the bits of their reference.
#pragma once

#include <vector>

#include "base/blob.h"
#include "base/result.h"
#include "base/tensor.h"
#include "base/workers.h"
#include "ir/graph.h"

namespace tw::recipe {

Result<std::vector<Tensor>> evaluateNode(ir::Node const& node, std::vector<TensorRef> const& inputs);

// Graphs of constants: the bytes of each output, null for those that need none of the constants in `changed` (by
// position among values(); empty: all are wanted). Nodes that do not wait for each other are shared out to the workers.
Result<std::vector<BlobPtr>> evaluate(ir::Graph const& graph, std::vector<bool> const& changed,
                                      Workers& workers = serialWorkers());

// Loops for what passes do to large weights: one factor for each channel, side by side, parts, transposed, in FP16. Each
// gives the bits of the op's reference: of two floats a sum, difference, product or quotient that is rounded from
// double is the one that is rounded at once.

// The node's output; without data where there is no loop for it.
Tensor runLoop(ir::Node const& node, std::vector<TensorRef> const& inputs);

} // namespace tw::recipe
