// SPDX-License-Identifier: Apache-2.0
// Lets go of weights that kernels have packed: an engine keeps each weight once.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "runtime/block.h"

namespace tw::runtime {

// Constants that a step still reads (and small ones) go where `keep` says, or to a copy where it is null or returns
// null, so that the plan's bytes may go; all others lose their contents. Kernels must be loaded; `graph` is the
// block's.
void releaseConstants(ir::Graph& graph, LoadedBlock const& block, std::function<BlobPtr(Blob const&)> const& keep);

} // namespace tw::runtime
