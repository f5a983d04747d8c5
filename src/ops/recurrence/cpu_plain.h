// SPDX-License-Identifier: Apache-2.0
// The tactic that takes everything, one sequence after the other.
#pragma once

#include "tactic/tactic.h"

namespace tw::ops::recurrence {

extern PlainTactic const kPlainCpu;

} // namespace tw::ops::recurrence
