// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/plan.h"
#include "runtime/generation.h"

namespace tw::runtime {

// Gives the contents of the plan that an engine was loaded from the weights that it has now.
void takeWeights(plan::Contents& contents, Generation const& now);

} // namespace tw::runtime
