// SPDX-License-Identifier: Apache-2.0
// Bytes that kernels have made of constants, in GPU memory: what kernels of an engine make alike lies there once.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/device.h"
#include "tactic/packed_constants.h"

namespace tw::ops {

using DeviceBytes = std::shared_ptr<cuda::Buffer const>;

// Found again by what they are, since several constants may go into one part. The device's context is current.
Result<DeviceBytes> uploadPacked(std::string const& bytes, std::shared_ptr<cuda::Device const> const& device,
                                 PackedConstants& packed);

} // namespace tw::ops
