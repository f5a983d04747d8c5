// SPDX-License-Identifier: Apache-2.0
// The generated plain matrix product y = f(a b + bias + residual), of floats or, with the end of integers, of i8: tiles of
// 64 x 64 in shared memory, any strides.
#pragma once

#include "ops/matrix_multiply/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

// Of a matrix product, without its norm.
std::unique_ptr<CudaKernels> multiplyKernels(Problem const& problem);

} // namespace tw::ops
