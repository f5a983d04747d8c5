// SPDX-License-Identifier: Apache-2.0
// 2:4 sparsity of weights: of each four neighbours along the axis that sums run over, at least two are zero. What sparse
// kernels ask of a constant, and what the log reports.
#pragma once

#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace tw::ops {

inline constexpr int kSparseGroup = 4, kSparseNonZeros = 2;

// Whether linear weights follow 2:4 along `axis`: its size is a multiple of four, not 0, and no aligned group of four has
// more than two elements other than 0 (-0 is 0, NaN is not). Elements of any type but bool.
bool isTwoOfFour(TensorRef const& weights, int axis);
// What such a tactic says of weights that a refit brings it. `what`: "its filters, along their channels".
Error notTwoOfFour(std::string const& layer, char const* what);

} // namespace tw::ops
