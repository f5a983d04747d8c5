// SPDX-License-Identifier: Apache-2.0
// Work in phases that workers share, each phase when all of the one before is done.
#pragma once

#include <cstdint>

#include "base/workers.h"

namespace tw::ops::recurrence {

inline constexpr int kMostParts = 64;

// Calls body(phase, part) once for each phase in order and each part of it. A part has a worker whose own it is,
// so that what it reads stays in that one's cache; but whoever has nothing else to do takes a part that nobody has begun:
// no phase waits for a worker that does not come. parts <= kMostParts.
void runPhases(Workers& workers, int64_t phases, int parts, FunctionRef<void(int64_t phase, int part)> body);

} // namespace tw::ops::recurrence
