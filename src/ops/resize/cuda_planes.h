// SPDX-License-Identifier: Apache-2.0
// Resizing of planes of FP16 and FP32 in linear tensors: nearest, and linear mixes of 2 x 2 elements; a block makes the
// same few rows of several planes from rows of x in shared memory.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::resize {

std::unique_ptr<CudaKernels> generatePlanes(Problem const& problem, Config const& config);
Support supportsPlanes(Problem const& problem);
std::vector<Formats> formatsOfPlanes(Problem const& problem);
std::vector<Config> configsOfPlanes(Problem const& problem);

} // namespace tw::ops::resize
