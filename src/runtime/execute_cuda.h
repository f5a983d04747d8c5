// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend adds to loaded blocks and instances.
#pragma once

#include <memory>

#include "runtime/block.h"

namespace tw::runtime {

// Copies constants that kernels read into GPU memory and sets deviceConstants, and what holds them. `like`: the block
// with other weights, or null; what both have stays where it is.
Result<void> uploadConstants(LoadedBlock& block, LoadedBlock const* like,
                             std::shared_ptr<cuda::Device const> const& device);
// The same for values that shape arithmetic has computed on the host and kernels read as data. After placeInArena().
Result<void> uploadContents(Instance& instance, std::shared_ptr<cuda::Device const> const& device);
int64_t contentsBytesOnDevice(Instance const& instance); // what it takes for that

// execute() for args with a device.
Result<void> executeCuda(Instance& instance, ExecuteArgs& args);

} // namespace tw::runtime
