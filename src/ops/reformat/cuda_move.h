// SPDX-License-Identifier: Apache-2.0
// Between any two formats as a box whose axes change places, where vectors are full.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reformat {

CudaKernels generateMove(Problem const& problem, Config const& config);
Support supportsMove(Problem const& problem);

} // namespace tw::ops::reformat
