// SPDX-License-Identifier: Apache-2.0
// Maximum and average of FP16, FP32 and i8 images by pixels (pixelVectorsOf()): 16 bytes of channels for each thread.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::pooling {

std::unique_ptr<CudaKernels> generateNhwc(Problem const& problem, Config const& config);
Support supportsNhwcOnCuda(Problem const& problem);    // FP16
Support supportsNhwcF32OnCuda(Problem const& problem); // FP32
Support supportsNhwcI8OnCuda(Problem const& problem);  // i8
std::vector<Config> configsOfNhwc(Problem const& problem);
std::vector<Formats> formatsOfNhwc(Problem const& problem);

} // namespace tw::ops::pooling
