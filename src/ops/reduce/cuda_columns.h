// SPDX-License-Identifier: Apache-2.0
// Reductions of axes with kept ones after them: columns of a matrix, or of many.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce::columns {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem);
std::vector<Config> configs(Problem const& problem);

} // namespace tw::ops::reduce::columns
