// SPDX-License-Identifier: Apache-2.0
// FP16 convolutions transposed whose windows lie side by side (stride = window, no padding): x and y in Format::kHWC8,
// constant filters. Each position of the window is a product of its own, which writes every stride-th pixel. wgmma,
// compute capability 9.0.
#pragma once

#include "ops/cuda_tactic.h"

namespace tw::ops::deconv_f16 {

CudaKernels generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem);
std::vector<Config> configs(Problem const& problem);
std::vector<Formats> formats(Problem const& problem);

} // namespace tw::ops::deconv_f16
