// SPDX-License-Identifier: Apache-2.0
// A layer in two launches, FP16: one product for what all steps get of x, then all steps at once, by warps that keep their
// units' recurrent weights in registers. The config: {how states go from step to step (recurrence_registers.cuh), hidden
// units of a warp, warps that share a block's units, warps that share k, groups of sequences, directions side by side,
// whether a block waits for one part of the states before it reads the others}.
#pragma once

#include "ops/recurrence/cuda_plain.h"

namespace tw::ops::recurrence::registers {

extern CudaTactic const kF16;

} // namespace tw::ops::recurrence::registers
