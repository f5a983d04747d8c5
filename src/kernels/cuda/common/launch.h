// SPDX-License-Identifier: Apache-2.0
// What kernels that are fed by tensor maps need from the driver.
#pragma once

#include "device/cuda/driver.h"
#include "kernels/cuda/common/tensor_map.h"

namespace tw::cuda {

// LaunchGeometry::cluster of a grid whose blocks are all there at once (a cooperative launch).
constexpr int kWholeGrid = -1;

// `params`: addresses of the kernel's parameters, in order. `isDependent`: it may begin before the kernel before has
// ended (capability 9.0). Clusters and dependence want a driver of CUDA 12.
Result<void> launchKernel(Driver const& driver, CUfunc_st* kernel, LaunchGeometry const& geometry, void** params,
                          bool isDependent, CUstream_st* stream);

Result<TensorMap> encodeMap(Driver const& driver, TensorMapSpec const& spec, void const* address);

} // namespace tw::cuda
