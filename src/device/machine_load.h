// SPDX-License-Identifier: Apache-2.0
// Whether others use the CPUs that kernels are timed on.
#pragma once

#include <string>

namespace tw::device {

// Processes that ran or wanted to in the last minute, on average; 0 where the system does not say.
double loadAverage();
// More than the CPUs can run, ours among them.
bool isBusy(double load, int cpus);
// "This machine is busy (load 5.1 on 2 CPUs): ..."; empty: it is not.
std::string busyLine();

} // namespace tw::device
