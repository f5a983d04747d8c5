// SPDX-License-Identifier: Apache-2.0
// Tactics that stand in files of their own.
#pragma once

#include "tactic/cpu_tactic.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::attention {

// Attention by emitted kernels, f32: for each head, keys and values are packed once; then for each tile of queries the
// scores (a product with the packed keys), their softmax in place, and the product with the packed values, while the
// tile's scores stay in L1 (L2 for thousands of keys).
extern CpuFunctions const kJit;

extern CudaTactic const kF16Wgmma, kF16Mma, kTf32Mma, kF32Mma;

} // namespace tw::ops::attention
