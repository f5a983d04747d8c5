// SPDX-License-Identifier: Apache-2.0
// Which device builders and runtimes work on.
#pragma once

#include <memory>

#include "NvInferRuntime.h"
#include "api/environment.h"
#include "api/report.h"
#include "device/cuda/target.h"

namespace tw::api {

// The GPU, or null: the CPU. A GPU when the driver and one answer, unless the environment says otherwise or the process
// has our stand-in for the CUDA runtime; the client's current device, if it has one, in the context that is current
// there (cuCtxCreate, else the primary one). An error when the environment asks for a GPU that cannot be had.
Result<std::shared_ptr<cuda::Target const>> chooseGpu(Environment const& environment, Reporter& log);

// The same GPU with a client's allocator for all device memory; `gpu` itself where either is null.
Result<std::shared_ptr<cuda::Target const>> withAllocator(std::shared_ptr<cuda::Target const> gpu,
                                                          nvinfer1::IGpuAllocator* allocator);
// The GPU for an engine that is loaded now: the client's current one (cudaSetDevice), else `gpu`; null: the CPU.
Result<std::shared_ptr<cuda::Target const>> currentGpu(std::shared_ptr<cuda::Target const> gpu,
                                                       Environment const& environment);

// An error when the GPU cannot read and write there: plain host memory, where the system does not share it. It is
// called by its kind and name, if it has one. The device's context is current.
Result<void> checkOnGpu(cuda::Device const& device, void const* address, char const* kind,
                        std::string const& name = {});

// The contrary: an error for GPU memory that the host cannot read.
Result<void> checkOnHost(cuda::Device const& device, void const* address, std::string const& name);

// What identifies the device in plans and timing caches.
std::string fingerprintOf(cuda::Target const* gpu);

} // namespace tw::api
