// SPDX-License-Identifier: Apache-2.0
// What CUDA tactics of this op share.
#pragma once

#include "ops/recurrence/op.h"
#include "ops/recurrence/recurrence_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::recurrence {

// The constants and the function that the device code of this op reads; `isForHalf`: exact enough for results in FP16.
std::string attrsText(Problem const& problem, bool isForHalf = false);
Params paramsOf(Attrs const& a, RunArgs const& args);

} // namespace tw::ops::recurrence
