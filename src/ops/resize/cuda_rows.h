// SPDX-License-Identifier: Apache-2.0
// Images resized along their two axes, in planes or by pixels: a thread walks down the rows of y and keeps what it has
// read of x.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::resize::rows {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
std::vector<Config> configs(Problem const& problem);
Support supports(Problem const& problem);
std::vector<Formats> formats(Problem const& problem);

} // namespace tw::ops::resize::rows
