// SPDX-License-Identifier: Apache-2.0
// The expression as emitted kernels take it.
#pragma once

#include "families/elementwise/pointwise_jit.h"
#include "ops/pointwise/op.h"

namespace tw::ops::pointwise {

// Counts must fit each other (infer checks them); codes and operands are kernels::jit::checkProgram()'s matter.
PointwiseSpec specOf(Attrs const& a);

} // namespace tw::ops::pointwise
