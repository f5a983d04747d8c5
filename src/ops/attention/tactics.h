// SPDX-License-Identifier: Apache-2.0
// CUDA tactics that stand in files of their own.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::attention {

extern CudaTactic const kF16Wgmma, kF16Mma, kTf32Mma, kF32Mma;

} // namespace tw::ops::attention
