// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tactic/tactic.h"

namespace tw::ops {

// Microseconds that a kernel is expected to take, without running it: the tactic's estimate, corrected by what was measured
// (estimates.def). 0: not known.
double expectedTime(Tactic const& tactic, Problem const& problem, Config const& config);

} // namespace tw::ops
