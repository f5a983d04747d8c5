// SPDX-License-Identifier: Apache-2.0
// --safe and --consistency: the safe runtime and the consistency checker, libraries of their own that are opened by name.
#pragma once

#include "build.h"

namespace tw::trtexec {

// What of the two is needed can be opened, and what else is asked for goes with it.
void checkSafeOptions(Log& log, Options const& options);
// Whether the checker takes the plan in the workspace.
bool isConsistent(Log& log, LibraryLogger& logger, Workspace const& work);
// Makes the safety engine, as deserialize() makes others.
void deserializeSafe(Log& log, LibraryLogger& logger, Workspace& work);

} // namespace tw::trtexec
