// SPDX-License-Identifier: Apache-2.0
// What optimization profiles say of the symbols in the shapes of a graph's inputs.
#pragma once

#include "plan/plan.h"

namespace tw::runtime {

// Of symbols that stand alone as a dimension of an input, or as an element of a shape tensor. Inputs that share one
// have to agree when they run: the range is what all of them allow, or that of all together where this is nothing.
ir::SymbolTable symbolRanges(ir::Graph const& g, plan::Profile const& profile);
// What any of the profiles allows.
ir::SymbolTable symbolRanges(ir::Graph const& g, std::vector<plan::Profile> const& profiles);
// A number where the ranges leave one value only: what has equal minimum and maximum is static.
ir::Dim fixedDim(ir::Dim const& d, ir::SymbolTable const& ranges);

} // namespace tw::runtime
