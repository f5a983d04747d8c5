// SPDX-License-Identifier: Apache-2.0
// Recurrent layers read and write sequences in the order in which they lie: importers bring steps and sequences into the
// order of IRNNv2Layer, and what they made back into that of the model.
//   before: transpose(x) -> recurrence [N,T,E] -> y [N,T,H] -> transpose        after: recurrence [T,N,E] -> y [T,N,H]
// and the other way round.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

namespace tw::passes {

// Whether it changed the graph. Leaves alone: layers whose y is read by others than shuffles, which would only be
// transposed elsewhere.
Result<bool> dropTranspositions(ir::Graph& g);

} // namespace tw::passes
