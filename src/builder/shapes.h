// SPDX-License-Identifier: Apache-2.0
// Whether tuning at the shapes of the optimization profiles fits into memory.
#pragma once

#include <string>

#include "runtime/block.h"

namespace tw::builder {

// Tuning holds a layer's inputs and its outputs twice (the kernel's and the reference's). What cannot fit is refused
// here, where layer and tensor have names.
Result<void> checkTuningMemory(runtime::LoadedBlock const& block, runtime::Instance const& inst, int64_t limit);

std::string mebibytes(int64_t bytes);

} // namespace tw::builder
