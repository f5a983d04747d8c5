// SPDX-License-Identifier: Apache-2.0
// GELU as exporters write it, with error function or hyperbolic tangent:
//   x/2 (1 + erf(x / sqrt 2))          x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
// in any order of factors. What counts is the function: the nodes are evaluated, not compared with a list of forms.
#pragma once

#include "passes/match_activation.h"

namespace tw::recipe {
class Recipes;
}

namespace tw::passes {

// The GELU that is computed on `x`, when nothing else reads x or what lies between.
std::optional<MatchedActivation> matchGelu(ir::Graph const& g, ir::Value const* x, recipe::Recipes const* refit);

} // namespace tw::passes
