// SPDX-License-Identifier: Apache-2.0
// Sum, average, product, maximum or minimum over the pixels of FP16 and FP32 images in Format::kHWC8; y is linear.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce::nhwc {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supportsF16(Problem const& problem); // FP16
Support supportsF32(Problem const& problem); // FP32
std::vector<Config> configs(Problem const& problem);
std::vector<Formats> formats(Problem const& problem);

} // namespace tw::ops::reduce::nhwc
