// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "builder/build.h"
#include "runtime/block.h"

namespace tw::builder {

// Fills in what the chosen tactics are measured by: the limit of each layer that is run, and why its tactic is no fast
// kernel where it is none (tune/limit.h). Layers that are not run, since they only name parts of other tensors, lose
// their time. Where nothing was measured (Options::tune.heuristicOnly) nothing is said. `isBusy`: as in tune::lackOf().
void addLimits(plan::Block& block, runtime::LoadedBlock const& loaded, runtime::Instance const& opt,
               runtime::Instance const& max, Options const& options, bool isBusy);

} // namespace tw::builder
