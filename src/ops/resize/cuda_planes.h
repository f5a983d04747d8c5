// SPDX-License-Identifier: Apache-2.0
// Resizing of planes of FP16 and FP32 in linear tensors: nearest, and linear mixes of 2 x 2 elements; a block makes the
// same few rows of several planes from rows of x in shared memory.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::resize::planes {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem);
std::vector<Formats> formats(Problem const& problem);
std::vector<Config> configs(Problem const& problem);

} // namespace tw::ops::resize::planes
