// SPDX-License-Identifier: Apache-2.0
// Planes mixed linearly whose rows begin anywhere: a lane of a warp makes a row of y, so that all lanes are at the same
// column, whose weights and neighbours are constants.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::resize::lanes {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
std::vector<Config> configs(Problem const& problem);
Support supports(Problem const& problem);
std::vector<Formats> formats(Problem const& problem);

} // namespace tw::ops::resize::lanes
