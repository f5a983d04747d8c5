// SPDX-License-Identifier: Apache-2.0
// CUDA tactics that stand in files of their own.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::gather {

extern CudaTactic const kRing, kStaged;

} // namespace tw::ops::gather
