// SPDX-License-Identifier: Apache-2.0
// Turns the layers of a network into a graph with regions.
#pragma once

#include "api/control_flow/nesting.h"
#include "api/network/network.h"

namespace tw::api::control_flow {

// Adds everything that the network's outputs need to `graph`, which holds the network inputs already; `values` says
// what became of the tensors outside of all constructs.
Result<void> emit(NetworkObject& network, Nesting const& nesting, ir::Graph& graph,
                  std::map<TensorObject const*, ir::Value*>& values);

// A region's graph while it is filled, and how values of the graph around become its inputs.
using Values = std::map<TensorObject const*, ir::Value*>;

struct Region
{
    int construct = -1; // whose it is; -1: the network's graph
    int branch = 0;     // of a conditional: 0 then, 1 else
    ir::Graph* graph = nullptr;
    Values* values = nullptr;
};

// Adds an input to `region` for a value around it (or its slices without `axis`, if that is >= 0). Sizes that nodes
// around bind get another name inside, where node numbers start anew. Elements are known inside where they are around,
// if `same`: the input is the value itself in every run of the region.
ir::Value* addRegionInput(ir::Graph& region, ir::Graph const& around, ir::Value const& outer, int axis, bool same);

// The value as a constant of `region`, where it is one or shape arithmetic knows all its elements; else null.
ir::Value* asConstant(ir::Graph& region, ir::Value const& outer);

} // namespace tw::api::control_flow
