// SPDX-License-Identifier: Apache-2.0
// Softmax along an axis with others after it: in one pass over memory, the axis in registers.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::softmax {

std::unique_ptr<CudaKernels> generateColumns(Problem const& problem, Config const& config);
Support supportsColumns(Problem const& problem);
std::vector<Config> configsOfColumns(Problem const& problem);

} // namespace tw::ops::softmax
