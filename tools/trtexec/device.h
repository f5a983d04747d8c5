// SPDX-License-Identifier: Apache-2.0
// Which device the run uses, and what is printed of it.
#pragma once

#include "options.h"

namespace tw::trtexec {

class Log;

// Sets the environment variables that the library reads; must run before its first call.
void selectDevice(SystemOptions const& system);
void printDevice(Log& log);

} // namespace tw::trtexec
