// SPDX-License-Identifier: Apache-2.0
// Reductions of the innermost axes: of rows that lie together.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce::rows {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem);
std::vector<Config> configs(Problem const& problem);

} // namespace tw::ops::reduce::rows

// Short ones, whatever their length: 7x7 pixels of a channel, 64 elements of a head.
namespace tw::ops::reduce::short_rows {

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config);
Support supports(Problem const& problem);
std::vector<Config> configs(Problem const& problem);

} // namespace tw::ops::reduce::short_rows
