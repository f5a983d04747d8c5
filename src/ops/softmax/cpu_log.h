// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "base/tensor.h"
#include "base/workers.h"
#include "kernels/cpu/rows.h"

namespace tw::ops::softmax {

inline constexpr float kLowest = -std::numeric_limits<float>::infinity(); // the maximum of nothing

// y = x - m - log(s) along `axis`.
void logSoftmax(kernels::RowKernels const& k, int axis, TensorRef const& x, float* y, Workers& workers);

} // namespace tw::ops::softmax
