// SPDX-License-Identifier: Apache-2.0
// The constants of a graph and of its regions, in an order that copies of the graph have too.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace tw::runtime {

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
