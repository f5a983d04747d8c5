// SPDX-License-Identifier: Apache-2.0
// Along the innermost axis: rows of x wait in shared memory for their indices.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::gather {

std::unique_ptr<CudaKernels> generateStaged(Problem const& problem, Config const& config);
Support supportsStaged(Problem const& problem);

} // namespace tw::ops::gather
