// SPDX-License-Identifier: Apache-2.0
// Constants whose data lie in panels, as they lie in the plan, for those who read them in the order of their shape.
#pragma once

#include <map>
#include <vector>

#include "ir/graph.h"
#include "tactic/panel_order.h"

namespace tw::runtime {

using Panels = std::map<ir::Value const*, ops::PanelOrder>;

// The value's data in the order of its shape, in memory of their own.
void unfoldPanels(ir::Value& value, ops::PanelOrder const& order);
// Of those in `panels`, what is not the input of exactly one node of `graph` without regions: only such nodes have a
// kernel that may read panels.
std::vector<ir::Value*> usedElsewhere(ir::Graph const& graph, Panels const& panels);
// Unfolds these (`all`: everything) and takes them out of `panels`.
void unfoldOtherPanels(ir::Graph& graph, Panels& panels, bool all);

} // namespace tw::runtime
