// SPDX-License-Identifier: Apache-2.0
// What the ops with regions (conditional, loop) share. A region's inputs are bound, in order, to inputs of the node or
// to slices of them; it keeps its own copy of the symbols that its shapes name, so a symbol of a region's input shape
// stands for whatever the node's input has there.
#pragma once

#include "ir/infer.h"

namespace tw::ops {

// The node's input that an input of a region is bound to, or a slice of it without `axis`.
struct RegionInput
{
    int outer = 0;
    int axis = -1; // -1: the whole input
};
// All inputs from `first` on.
std::vector<RegionInput> regionInputsFrom(ir::InferContext const& ctx, int first);

// Region r takes these inputs: count, types, ranks and constant dimensions must agree.
Result<void> checkRegionInputs(ir::InferContext& ctx, size_t r, std::vector<RegionInput> const& inputs,
                               char const* name);

// A dimension of a region's output as the node's surroundings see it; `known` false: only its range can be said.
struct OuterDim
{
    bool known = false;
    ir::Dim dim;
    ir::Range range;
};
OuterDim outerDim(ir::InferContext const& ctx, size_t r, std::vector<RegionInput> const& inputs, ir::Dim const& inner);

} // namespace tw::ops
