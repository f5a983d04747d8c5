// SPDX-License-Identifier: Apache-2.0
// Shapes of the optimization profiles, and whether tuning at them fits into memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "runtime/block.h"

namespace tw::builder {

// Shapes at the minimum, optimum and maximum of a profile.
struct ProfileShapes
{
    std::vector<Tensor> storage;
    std::unique_ptr<runtime::Instance> at[3]; // by runtime::Select
};

Result<ProfileShapes> resolveProfile(plan::Contents const& contents, runtime::LoadedBlock const& block, size_t profile);

// Tuning holds a layer's inputs and its outputs twice (the kernel's and the reference's). What cannot fit is refused
// here, where layer and tensor have names.
Result<void> checkTuningMemory(runtime::LoadedBlock const& block, runtime::Instance const& inst, int64_t limit);

std::string mebibytes(int64_t bytes);

} // namespace tw::builder
