// SPDX-License-Identifier: Apache-2.0
// Resizing of FP16 and FP32 images in Format::kHWC8, of sizes that are known when the kernel is written: nearest, and
// linear mixes of up to 2 x 2 pixels; a thread walks down a strip with 16 bytes of channels.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::resize::strips {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem);
std::vector<Formats> formats(Problem const& problem);
std::vector<Config> configs(Problem const& problem);

} // namespace tw::ops::resize::strips
