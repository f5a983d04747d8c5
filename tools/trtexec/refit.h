// SPDX-License-Identifier: Apache-2.0
// --dumpRefit and --timeRefit.
#pragma once

#include "build.h"

namespace tw::trtexec {

void dumpRefittable(Log& log, LibraryLogger& logger, nvinfer1::ICudaEngine& engine);
// Refits every weight of the network with the values it has. Needs the network, hence not --loadEngine.
void timeRefit(Log& log, LibraryLogger& logger, Workspace& work, bool multithreaded);

} // namespace tw::trtexec
