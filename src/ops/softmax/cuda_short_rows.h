// SPDX-License-Identifier: Apache-2.0
// Softmax of short rows that begin anywhere, by blocks of rows in shared memory.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::softmax {

Support supportsShortRows(Problem const& problem);
std::vector<Config> configsOfShortRows(Problem const& problem);
std::unique_ptr<CudaKernels> generateShortRows(Problem const& problem, Config const& config);

} // namespace tw::ops::softmax
