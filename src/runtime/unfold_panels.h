// SPDX-License-Identifier: Apache-2.0
// Constants whose data lie in panels, as they lie in the plan, for those who read them in the order of their shape.
#pragma once

#include <map>
#include <vector>

#include "ir/graph.h"
#include "tactic/packed_constants.h"

namespace tw::runtime {

using Panels = std::map<ir::Value const*, ops::PanelOrder>;

// The data of a constant in the order of its shape; readers of the same data share them.
Result<BlobPtr> unfolded(Blob const& inPanels, ops::PanelOrder const& order, ops::PackedConstants& packed);
// Gives the value other data.
void setData(ir::Value& value, BlobPtr data);
// Of those in `panels`, what is not the input of nodes of `graph` without regions alone: only these have a kernel that
// may read panels.
std::vector<ir::Value*> usedElsewhere(ir::Graph const& graph, Panels const& panels);
// Unfolds these (`all`: everything) and takes them out of `panels`.
Result<void> unfoldOtherPanels(ir::Graph& graph, Panels& panels, bool all, ops::PackedConstants& packed);

} // namespace tw::runtime
