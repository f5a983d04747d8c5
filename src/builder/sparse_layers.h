// SPDX-License-Identifier: Apache-2.0
// What the log says of 2:4 sparsity (BuilderFlag::kSPARSE_WEIGHTS), in 8.5's words.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "plan/plan.h"

namespace tw::builder {

// Layers of the imported graph whose weights follow 2:4 along the axis that sums run over: convolutions (input channels of
// a group) and products with a constant factor. Weights may stand behind quantize and dequantize, which keep zeros.
// Those of loops and branches count where the weights stand inside.
std::vector<std::string> sparseLayers(ir::Graph const& imported);

// The two lines: eligible layers by the names of the engine's nodes, and those of them that a sparse tactic computes.
std::vector<std::string> sparsityLines(std::vector<std::string> const& layers, ir::Graph const& graph,
                                       plan::Block const& chosen);

} // namespace tw::builder
