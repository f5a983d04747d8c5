// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "plan/copier.h"
#include "plan/plan.h"

namespace tw::plan {

struct ReadGraph
{
    std::unique_ptr<ir::Graph> graph;
    std::map<ir::Value const*, ops::PanelOrder> panels; // of its constants, those that stay in panels
    std::map<ir::Value const*, double> scales;          // see Contents
    std::unique_ptr<ir::Graph> recipes;                 // null: not given
    std::map<ir::Value const*, int32_t> made;           // see Contents::made; the positions may be wrong
};

// The graph with its regions, as untrusted as the file may be; ir::verify() has still to see it. Constants lie in
// `weights`, and stay there where `owner` keeps it; those in panels too, if `keepPanels`. What graph and recipes share is
// kept once.
Result<ReadGraph> readGraph(fb::Graph const& in, fb::Graph const* recipes, Section const& weights,
                            std::shared_ptr<void const> owner, bool keepPanels, Copier& copy);

} // namespace tw::plan
