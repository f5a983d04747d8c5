// SPDX-License-Identifier: Apache-2.0
// What of an engine can be captured in a CUDA graph.
#pragma once

#include <span>
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
// How many trips of a loop whose end the GPU finds are put into a turn (device/cuda/conditional_nodes.h): the last ones of
// the last turn are for nothing, so they are short ones that see small values, and may be made with any; 0: another step.
// `regions` are its own, null for those that are not used.
int tripsOfTurn(Instance const& instance, size_t step, std::span<Instance const* const> regions);
// Whether every run gives the same work, and enough of it, to launch it as one graph.
bool isWorthCapture(Instance const& instance, bool hasNodes = false);

} // namespace tw::runtime
