// SPDX-License-Identifier: Apache-2.0
// A graph whose formats were chosen for another device.
#pragma once

#include "ir/graph.h"

namespace tw::runtime {

// Everything linear, but the network's inputs and outputs, which clients know: these keep their formats behind
// reformats.
void makeLinear(ir::Graph& graph);

} // namespace tw::runtime
