// SPDX-License-Identifier: Apache-2.0
// Reformats in a graph, and a graph whose formats were chosen for another device.
#pragma once

#include <string>

#include "ir/graph.h"

namespace tw::runtime {

// A node before `position` that copies `v` into another format; it comes from no layer. Its output.
ir::Value* addReformat(ir::Graph& graph, ir::Value& v, Format to, int position, std::string name);

// Everything linear, but the network's inputs and outputs, which clients know: these keep their formats after
// reformats.
void makeLinear(ir::Graph& graph);

} // namespace tw::runtime
