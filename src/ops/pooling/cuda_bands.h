// SPDX-License-Identifier: Apache-2.0
// Pooling of linear images by bands of rows in shared memory: memory is read and written in packs of 16 bytes
// wherever rows begin.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::pooling::bands {

Support supports(Problem const& p);
std::vector<Config> configs(Problem const& p);
std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config);

} // namespace tw::ops::pooling::bands
