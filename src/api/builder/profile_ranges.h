// SPDX-License-Identifier: Apache-2.0
// An optimization profile as the plan holds it.
#pragma once

#include "api/builder/profile.h"
#include "api/network/network.h"
#include "plan/plan.h"

namespace tw::api {

// Inputs that have values for a shape tensor in some profile.
InputNames inputsWithValues(std::vector<OptimizationProfileObject const*> const& profiles);

// Profile `index` of the builder's configuration, for this network's inputs, which are those of `graph`; an error names
// what it lacks.
Result<plan::Profile> toProfile(NetworkObject const& n, ir::Graph const& graph, OptimizationProfileObject const& p,
                                size_t index);

} // namespace tw::api
