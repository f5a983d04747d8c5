// SPDX-License-Identifier: Apache-2.0
// Loops for what passes do to large weights: one factor for each channel, side by side, parts, transposed, in FP16. Each
// gives the bits of the op's reference: of two floats a sum, difference, product or quotient that is rounded from
// double is the one that is rounded at once.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "ir/graph.h"

namespace tw::recipe {

// The node's output; without data where there is no loop for it.
Tensor runLoop(ir::Node const& node, std::vector<TensorRef> const& inputs);

} // namespace tw::recipe
