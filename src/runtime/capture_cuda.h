// SPDX-License-Identifier: Apache-2.0
// What of an engine can be captured in a CUDA graph.
#pragma once

#include <string>

#include "runtime/block.h"

namespace tw::runtime {

// Empty, or why a run with these shapes needs the host between its kernels.
std::string whyNotCaptured(Instance const& instance);

} // namespace tw::runtime
