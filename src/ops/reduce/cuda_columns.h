// SPDX-License-Identifier: Apache-2.0
// Reductions of axes with kept ones after them: columns of a matrix, or of many.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce {

std::unique_ptr<CudaKernels> generateColumns(Problem const& problem, Config const& config);
Support supportsColumns(Problem const& problem);
std::vector<Config> configsOfColumns(Problem const& problem);

} // namespace tw::ops::reduce
