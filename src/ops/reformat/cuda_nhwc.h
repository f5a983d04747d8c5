// SPDX-License-Identifier: Apache-2.0
// Between linear and kHWC8 for types of 2 bytes: squares of 8 channels by 8 pixels, turned in registers.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reformat {

std::unique_ptr<CudaKernels> generateNhwc(Problem const& problem, Config const& config);
std::vector<Config> configsOfNhwc(Problem const& problem);
Support supportsNhwc(Problem const& problem);
std::vector<Formats> formatsOfNhwc(Problem const& problem);

} // namespace tw::ops::reformat
