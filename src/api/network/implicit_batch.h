// SPDX-License-Identifier: Apache-2.0
// Networks without a dimension for the batch: the graph has one before those that the client sees.
#pragma once

#include <string>

#include "ir/graph.h"

namespace tw::api {

constexpr char const* kBatch = "batch"; // the symbol of the dimension

bool hasBatch(ir::Value const* value);
// v of shape [1, ...] repeated over the batch, by a slice that does not step along it; v itself when no input has a
// batch. `name` is for the nodes, `layer` where they come from.
Result<ir::Value*> overBatch(ir::Graph& graph, ir::Value* v, std::string const& name, std::string const& layer);

} // namespace tw::api
