// SPDX-License-Identifier: Apache-2.0
// Moves reshapes behind the nodes that read them: a node takes what was there before the reshape, and a reshape behind it gives
// the shape that it gave.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace tw::passes {

// Puts a node like `n` with these inputs and attributes, and a reshape, in its place. Returns what it makes, in front of the
// reshape; null, and nothing changed: no attributes say the shape, or the type would be another. `n` has one output. Where that
// leaves the graph, what is in front of the reshape is called after it, with `suffix`; else it has its name, by which
// ranges of INT8 are known.
Result<ir::Value*> liftNode(ir::Graph& g, ir::Node* n, std::unique_ptr<ir::AttrsBase> attrs,
                            std::vector<ir::Value*> const& inputs, std::string const& suffix);

// Runs `lift`, which says whether it lifted its node, on all nodes in order, and clears away the reshapes that nobody reads
// or that another one undoes.
Result<bool> liftEach(ir::Graph& g, PassContext const& ctx, std::function<Result<bool>(ir::Node*)> const& lift);

} // namespace tw::passes
