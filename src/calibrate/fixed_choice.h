// SPDX-License-Identifier: Apache-2.0
// Formats and tactics by a fixed rule, never by time, so that sums have one order in every build on this kind of CPU: of
// the tactics that compute in the tensors' own types without transforms (ops::Rounding::kPlain) the one with the least
// estimate for one thread, ties to the first in the op's list; one without an estimate where there is no other.
#pragma once

#include <span>

#include "base/result.h"
#include "builder/formats.h"
#include "plan/plan.h"
#include "runtime/block.h"

namespace tw::calibrate {

// Gives values the formats with the least estimate and puts reformats in; network inputs and outputs stay linear.
// `block` and `shapes` belong to the graph as it is, and are stale where the summary says that something changed.
Result<builder::FormatSummary> assignFixedFormats(ir::Graph& g, runtime::LoadedBlock const& block,
                                                  runtime::Instance const& shapes,
                                                  std::span<ops::TacticProvider const* const> providers);

// For each step, in the formats that its tensors have.
plan::Block chooseFixed(runtime::LoadedBlock const& block, runtime::Instance const& shapes,
                        std::span<ops::TacticProvider const* const> providers);

} // namespace tw::calibrate
