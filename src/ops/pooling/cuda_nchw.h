// SPDX-License-Identifier: Apache-2.0
// Maximum and average of FP16 and FP32 images in the linear format: rows of a plane by accesses of up to 16 bytes,
// columns that neighbours hold by exchange within the warp.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::pooling::nchw {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem);
std::vector<Config> configs(Problem const& problem);

} // namespace tw::ops::pooling::nchw
