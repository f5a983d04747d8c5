// SPDX-License-Identifier: Apache-2.0
// Lets go of weights that kernels have packed: an engine keeps each weight once.
#pragma once

#include <cstddef>

#include "ir/graph.h"
#include "runtime/block.h"

namespace tw::runtime {

// Constants that a step still reads (and small ones) are copied to memory of their own, so that the plan's bytes may
// go, but for those of at least `borrowFromBytes`; all others lose their contents. Kernels must be loaded; `graph` is
// the block's. True when some still lie in the plan's bytes.
bool releaseConstants(ir::Graph& graph, LoadedBlock const& block, size_t borrowFromBytes);

} // namespace tw::runtime
