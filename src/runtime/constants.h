// SPDX-License-Identifier: Apache-2.0
// Constants whose data lie in panels, as they lie in the plan, for those who read them in the order of their shape.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "ir/graph.h"
#include "runtime/block.h"
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

// Lets go of weights that kernels have packed: an engine keeps each weight once.

// Constants that a step still reads (and small ones) go where `keep` says, or to a copy where it is null or returns
// null, so that the plan's bytes may go; all others lose their contents. Kernels must be loaded; `graph` is that of all
// blocks.
void releaseConstants(ir::Graph& graph, std::vector<std::unique_ptr<LoadedBlock>> const& blocks,
                      std::function<BlobPtr(Blob const&)> const& keep);

// The constants of a graph and of its regions, in an order that copies of the graph have too.

inline void collectConstantsOf(ir::Graph& g, std::vector<ir::Value*>& list)
{
    for (auto const& v : g.values())
        if (v->isConstant())
            list.push_back(v.get());
    for (auto const& n : g.nodes)
        for (auto const& r : n->regions)
            collectConstantsOf(*r, list);
}

inline std::vector<ir::Value*> constantsOf(ir::Graph& g)
{
    std::vector<ir::Value*> list;
    collectConstantsOf(g, list);
    return list;
}

} // namespace tw::runtime
