// SPDX-License-Identifier: Apache-2.0
// Libraries load a kernel when it is first launched, which a client's capture in a CUDA graph may forbid.
#pragma once

#include <functional>
#include <memory>

#include "device/cuda/device.h"

namespace tw::cuda {

// Has `work` put its launches into a graph that nobody runs: the kernels are loaded then, no address is read or
// written. What fails here is found out when it is run. The device's context is current.
void warmUp(std::shared_ptr<Device const> const& device, std::function<Result<void>(CUstream_st*)> const& work);

// An address for it: nothing lies there.
inline void* nowhere()
{
    return reinterpret_cast<void*>(uintptr_t(1) << 20);
}

} // namespace tw::cuda
