// SPDX-License-Identifier: Apache-2.0
// How large values can be whose sizes only the run decides.
#pragma once

#include "runtime/block.h"

namespace tw::runtime {

// Of a step that is resolved, and its regions: outputs of which nothing is known yet.
void boundOutputs(Instance& inst, size_t index);

} // namespace tw::runtime
