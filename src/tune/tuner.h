// SPDX-License-Identifier: Apache-2.0
// Chooses a tactic for each region: candidates -> supported -> checked -> timed -> the fastest. A candidate that
// computes wrong values is never chosen, however fast.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "tune/options.h"
#include "tune/timing_cache.h"

namespace tw::tune {

// The best tactic for each of several combinations of formats, timed against each other so that their times can be
// compared. Combinations with nothing but a plain tactic come out as errors where others have emitted kernels.
// An error, when no candidate is left, lists why each was refused.
std::vector<Result<plan::Choice>> chooseEach(ops::Problem const& problem, std::vector<ops::Formats> const& formats,
                                             Options const& options);

// What the cache says of a problem in its formats.
std::optional<CacheEntry> cached(ops::Problem const& problem, Options const& options);

} // namespace tw::tune
