// SPDX-License-Identifier: Apache-2.0
// From an imported graph to graphs whose nodes are ready to be tuned: the passes, and which values stand on the host.
#pragma once

#include "builder/build.h"

namespace tw::builder {

// What passes are told in this build.
passes::PassContext passContext(Options const& options, Log& log);

// Lowers the contents' graph in place; gives the graphs that the engine may be made of instead.
Result<std::vector<passes::Alternative>> lower(plan::Contents& contents, Options const& options, Log& log);

// The graph of an alternative to quantize_ranges with the pass, but for some layers, which stay in floating point.
Result<std::unique_ptr<ir::Graph>> lowerWithFloats(plan::Contents const& contents,
                                                   passes::Alternative const& alternative,
                                                   std::set<std::string> const& layers, Options const& options);

// The passes that stand after the choice of types, on a graph whose types the clock has chosen.
Result<void> lowerTyped(ir::Graph& graph, Options const& options, Log& log);

} // namespace tw::builder
