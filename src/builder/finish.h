// SPDX-License-Identifier: Apache-2.0
// What a build does behind the choice of tactics: limits, constants in panels, what INT8 values stand for.
#pragma once

#include "builder/build.h"
#include "ir/graph.h"
#include "passes/pass.h"
#include "plan/plan.h"
#include "runtime/block.h"
#include "runtime/constants.h"

namespace tw::builder {

// Fills in what the chosen tactics are measured by: the limit of each layer that is run, and why its tactic is no fast
// kernel where it is none (tune/limit.h). Layers that are not run, since they only name parts of other tensors, lose
// their time. Where nothing was measured (Options::tune.heuristicOnly) nothing is said. `isBusy`: as in tune::lackOf().
void addLimits(plan::Block& block, runtime::LoadedBlock const& loaded, runtime::Instance const& opt,
               runtime::Instance const& max, Options const& options, bool isBusy);

// Which constants the plan holds in the order that the chosen kernels read.

// Those that steps read, all in the same order, and nothing else. The block's kernels are loaded; instances of profile
// 0.
runtime::Panels choosePanels(ir::Graph const& graph, runtime::LoadedBlock const& block, plan::Block const& chosen,
                             runtime::Instance const& opt, runtime::Instance const& max, int threads);

// What INT8 values of a finished graph stand for, for those who look at an engine's values; no kernel asks.

// By name, what one step of each INT8 value is worth that the network's quantize layers make, or that quantize_ranges will.
// Whatever a quantize becomes a part of keeps its output's name. NaN: one name, several steps.
passes::Ranges stepsOf(ir::Graph const& imported, passes::Ranges const& ranges);

// What one step is worth of every INT8 value of which that is known: by its name in `steps`, by a constant scale of the
// quantize that makes it or of a dequantize that reads it, or by what its elements are moved from or to.
std::map<ir::Value const*, double> scalesOf(ir::Graph const& graph, passes::Ranges const& steps);

} // namespace tw::builder
