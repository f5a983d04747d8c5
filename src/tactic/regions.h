// SPDX-License-Identifier: Apache-2.0
// What the ops with regions (conditional, while_loop) share. A region's inputs are bound, in order, to inputs of the
// node; it keeps its own copy of the symbols that its shapes name, so a symbol of a region's input shape stands for
// whatever the node's input has there.
#pragma once

#include "ir/infer.h"

namespace tw::ops {

// Region r takes the node's inputs from `first` on: count, types, ranks and constant dimensions must agree.
Result<void> checkRegionInputs(ir::InferContext& ctx, size_t r, int first, char const* name);

// A dimension of a region's output as the node's surroundings see it; `known` false: only its range can be said.
struct OuterDim
{
    bool known = false;
    ir::Dim dim;
    ir::Range range;
};
OuterDim outerDim(ir::InferContext const& ctx, size_t r, int first, ir::Dim const& inner);

} // namespace tw::ops
