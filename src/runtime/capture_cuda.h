// SPDX-License-Identifier: Apache-2.0
// What of an engine can be captured in a CUDA graph.
#pragma once

#include <string>

#include "runtime/block.h"

namespace tw::runtime {

// Empty, or why a run with these shapes needs the host between its kernels. `hasNodes`: the driver has conditional
// nodes, by which the GPU decides the way of loops and branches.
std::string whyNotCaptured(Instance const& instance, bool hasNodes = false);
// Whether nothing but the run tells which way a step with regions goes.
bool isDecidedOnDevice(Instance const& instance, size_t step);
bool hasDecisionsOnDevice(Instance const& instance);
// Work that one run puts on the stream, about: a loop as often as it is made.
int64_t launchesOf(Instance const& instance);
// Whether something in it, or in a region, gives other results when it runs once more.
bool isStateful(ir::Graph const& graph);
// Whether every run gives the same work, and enough of it, to launch it as one graph.
bool isWorthCapture(Instance const& instance, bool hasNodes = false);

} // namespace tw::runtime
