// SPDX-License-Identifier: Apache-2.0
// Resizing of FP16, FP32 and i8 images by pixels (pixelVectorsOf()): nearest, and linear mixes of floats of up to 2 x 2
// pixels; 16 bytes of channels for each thread.
#pragma once

#include "ops/resize/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::resize::nhwc {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supportsF16(Problem const& problem); // FP16
Support supportsF32(Problem const& problem); // FP32
Support supportsI8(Problem const& problem);  // i8
std::vector<Formats> formats(Problem const& problem);

} // namespace tw::ops::resize::nhwc
