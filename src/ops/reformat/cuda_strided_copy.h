// SPDX-License-Identifier: Apache-2.0
// Between any two formats as a transposed box, where vectors are full.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reformat {

std::unique_ptr<CudaKernels> generateStridedCopy(Problem const& problem, Config const& config);
Support supportsStridedCopy(Problem const& problem);

} // namespace tw::ops::reformat
