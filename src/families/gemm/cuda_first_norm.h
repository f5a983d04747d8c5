// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tactic/cuda_tactic.h"

namespace tw::ops {

// `product` of rows of a that one more kernel normalizes first, into the workspace: any rows of any type.
std::unique_ptr<CudaKernels> afterPlainNorm(Problem const& problem, std::unique_ptr<CudaKernels> product);

} // namespace tw::ops
