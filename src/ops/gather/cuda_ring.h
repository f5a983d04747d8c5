// SPDX-License-Identifier: Apache-2.0
// Along the innermost axis of long rows: TMA brings rows into a ring of shared memory while elements of the
// row before are taken; registers hold the indices, which are the same for all rows.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::gather {

Support supportsRing(Problem const& problem);
std::unique_ptr<CudaKernels> generateRing(Problem const& problem, Config const& config);

} // namespace tw::ops::gather
