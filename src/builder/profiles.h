// SPDX-License-Identifier: Apache-2.0
// Kernels of the optimization profiles behind the first: the graph, with its types and formats, is the one that is best for
// the first; each profile has the fastest kernels for it in its own shapes.
#pragma once

#include "builder/attempts.h"
#include "builder/chooser.h"
#include "plan/plan.h"
#include "runtime/engine.h"

namespace tw::builder {

// Whether there is a choice for each profile. A selector's is asked for once, and its answers are for all.
bool choosesByProfile(plan::Contents const& contents, Options const& options);

// Chooses for all profiles but the first, and loads the kernels of all, in the attempt that was taken. An error where a profile
// has no kernel for the formats of the graph.
Result<void> chooseForOthers(plan::Contents const& contents, Options const& options, Chooser& chooser,
                             runtime::LoadOptions const& load, Attempt& attempt);

} // namespace tw::builder
