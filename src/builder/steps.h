// SPDX-License-Identifier: Apache-2.0
// What INT8 values of a finished graph stand for, for those who look at an engine's values; no kernel asks.
#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace tw::builder {

// By name, what one step of each INT8 value is worth that the network's quantize layers make, or that quantize_ranges will.
// Whatever a quantize becomes a part of keeps its output's name. NaN: one name, several steps.
passes::Ranges stepsOf(ir::Graph const& imported, passes::Ranges const& ranges);

// What one step is worth of every INT8 value of which that is known: by its name in `steps`, by a constant scale of the
// quantize that makes it or of a dequantize that reads it, or by what its elements are moved from or to.
std::map<ir::Value const*, double> scalesOf(ir::Graph const& graph, passes::Ranges const& steps);

} // namespace tw::builder
