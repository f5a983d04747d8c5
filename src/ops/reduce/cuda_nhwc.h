// SPDX-License-Identifier: Apache-2.0
// Sum, average, product, maximum or minimum over the pixels of FP16 and FP32 images in Format::kHWC8; y is linear.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce {

std::unique_ptr<CudaKernels> generateNhwc(Problem const& problem, Config const& config);
Support supportsNhwc(Problem const& problem);    // FP16
Support supportsNhwcF32(Problem const& problem); // FP32
std::vector<Config> configsOfNhwc(Problem const& problem);
std::vector<Formats> formatsOfNhwc(Problem const& problem);

} // namespace tw::ops::reduce
