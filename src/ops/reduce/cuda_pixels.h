// SPDX-License-Identifier: Apache-2.0
// Sum, average, product, maximum or minimum over the pixels of FP16 and FP32 images in Format::kHWC8; y is linear.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce {

CudaKernels generatePixels(Problem const& problem, Config const& config);
Support supportsPixels(Problem const& problem);   // FP16
Support supportsPixels32(Problem const& problem); // FP32
std::vector<Config> configsOfPixels(Problem const& problem);
std::vector<Formats> formatsOfPixels(Problem const& problem);

} // namespace tw::ops::reduce
