// SPDX-License-Identifier: Apache-2.0
// CUDA tactics that stand in files of their own.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce {

extern CudaTactic const kNhwc, kNhwcF32, kRows, kShortRows, kColumns;

} // namespace tw::ops::reduce
