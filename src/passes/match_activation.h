// SPDX-License-Identifier: Apache-2.0
// Activations that exporters write as several nodes which end in a product with their own input:
//   swish       x * sigmoid(x)
//   hard_swish  x * hard_sigmoid(x);  x * (clip(x + b, 0, h) / h);  (x * clip(x + b, 0, h)) / h
// Factors may stand on either side, a division may be a product with 1/h.
#pragma once

#include <optional>
#include <vector>

#include "families/elementwise/activate.h"
#include "ir/graph.h"

namespace tw::recipe {
class Recipes;
}

namespace tw::passes {

struct MatchedActivation
{
    ops::FusedActivation activation;
    std::vector<ir::Node*> nodes; // in order of execution; the last one makes the result
};
// The activation that is computed on `x`, when nothing else reads x or what lies between.
std::optional<MatchedActivation> matchActivation(ir::Graph const& g, ir::Value const* x, recipe::Recipes const* refit);

} // namespace tw::passes
