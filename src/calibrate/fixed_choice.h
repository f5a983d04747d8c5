// SPDX-License-Identifier: Apache-2.0
// Tactics by a fixed rule, never by time, so that sums have one order in every build on this kind of CPU.
#pragma once

#include <span>

#include "base/result.h"
#include "plan/plan.h"
#include "runtime/block.h"

namespace tw::calibrate {

// For each step, all tensors linear: of the tactics that compute in the tensors' own types without transforms
// (ops::Rounding::kPlain) the one with the least estimate for one thread, ties to the first in the op's list; one
// without an estimate where there is no other.
plan::Block chooseFixed(runtime::LoadedBlock const& block, runtime::Instance const& shapes,
                        std::span<ops::TacticProvider const* const> providers);

} // namespace tw::calibrate
