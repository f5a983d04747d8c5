// SPDX-License-Identifier: Apache-2.0
// Activations behind a value: the layer of that name, and those that exporters write as several nodes:
//   swish       x * sigmoid(x);  x / (1 + exp(-x))
//   hard_swish  x * hard_sigmoid(x);  x * (clip(x + b, 0, h) / h);  (x * clip(x + b, 0, h)) / h
//   GELU        x/2 (1 + erf(x / sqrt 2));  x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
// in any order of factors. What counts is the function: the nodes are evaluated, not compared with a list of forms.
#pragma once

#include <optional>
#include <vector>

#include "families/elementwise/activate.h"
#include "passes/rewrite.h"

namespace tw::passes {

struct MatchedActivation
{
    ops::FusedActivation activation;
    std::vector<ir::Node*> nodes; // in order of execution; the last one makes the result
};
// The activation that is computed on `x`, when nothing else reads x or what lies between.
std::optional<MatchedActivation> matchActivation(ir::Graph const& g, ir::Value const* x, recipe::Recipes const* refit);

} // namespace tw::passes
