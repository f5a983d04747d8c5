// SPDX-License-Identifier: Apache-2.0
// What the CUDA tactics share: the constants that roi_align_places.cuh wants, and where tensors lie.
#pragma once

#include <string>

#include "ops/roi_align/roi_align_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::roi_align {

std::string constantsOf(Problem const& problem);
Params paramsOf(RunArgs const& args);

extern CudaTactic const kPlanes, kNhwc;

} // namespace tw::ops::roi_align
