// SPDX-License-Identifier: Apache-2.0
// Pooling of linear images by bands of rows in shared memory: memory is read and written in packs of 16 bytes
// wherever rows begin.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::pooling {

Support supportsBandsOnCuda(Problem const& p);
std::vector<Config> configsOfBands(Problem const& p);
std::unique_ptr<CudaKernels> generateBands(Problem const& p, Config const& config);

} // namespace tw::ops::pooling
