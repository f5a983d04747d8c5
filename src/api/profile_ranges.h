// SPDX-License-Identifier: Apache-2.0
// An optimization profile as the plan holds it.
#pragma once

#include "api/network.h"
#include "api/profile.h"
#include "plan/plan.h"

namespace tw::api {

// Profile `index` of the builder's configuration, for this network's inputs; an error names what it lacks.
Result<plan::Profile> toProfile(NetworkObject& n, OptimizationProfileObject const& p, size_t index);

} // namespace tw::api
