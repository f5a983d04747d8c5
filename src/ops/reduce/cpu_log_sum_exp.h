// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/rows.h"
#include "ops/reduce/loops.h"
#include "tactic/tactic.h"

namespace tw::ops::reduce {

// y = m + log(sum of exp(x - m)), m the largest element of each sum; there are elements.
void logSumExp(kernels::RowKernels const& k, Loops loops, TensorRef const& x, float* y, Workers& workers);

} // namespace tw::ops::reduce
