// SPDX-License-Identifier: Apache-2.0
// Turns the layers of a network into a graph with regions.
#pragma once

#include "api/control_flow/nesting.h"

namespace tw::api::control_flow {

// Adds everything that the network's outputs need to `graph`, which holds the network inputs already; `values` says
// what became of the tensors outside of all constructs.
Result<void> emit(NetworkObject& network, Nesting const& nesting, ir::Graph& graph,
                  std::map<TensorObject const*, ir::Value*>& values);

} // namespace tw::api::control_flow
