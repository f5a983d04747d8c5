// SPDX-License-Identifier: Apache-2.0
// Reductions of the innermost axes: of rows that lie together.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce {

std::unique_ptr<CudaKernels> generateRows(Problem const& problem, Config const& config);
Support supportsRows(Problem const& problem);
std::vector<Config> configsOfRows(Problem const& problem);

// Short ones, whatever their length: 7x7 pixels of a channel, 64 elements of a head.
std::unique_ptr<CudaKernels> generateShortRows(Problem const& problem, Config const& config);
Support supportsShortRows(Problem const& problem);
std::vector<Config> configsOfShortRows(Problem const& problem);

} // namespace tw::ops::reduce
