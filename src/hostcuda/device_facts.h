// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda_runtime_api.h"

namespace tw::hostcuda {

// Sets every field; cudaErrorInvalidDevice for a device other than 0.
cudaError_t fillProperties(cudaDeviceProp& prop, int device);

// False for a number that is no attribute. Attributes of things that do not exist here (textures, surfaces, links,
// peer devices, memory clock and bus) are 0.
bool attributeOf(cudaDeviceAttr attr, int& value);

} // namespace tw::hostcuda
