// SPDX-License-Identifier: Apache-2.0
// The tactics, on CPUs with an object for each instruction set but the plain one.
#pragma once

#include "tactic/cpu_tactic.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::recurrence {

// In FP32 for known weights and batches of sequences: a step is a matrix product of all sequences' states, then the cells
// of all gates' sums. Products of x come for a few steps at a time, so that they are still in L2 when the steps read them.
// The config is {vectors of the product's tile, 1 where workers share the sequences (none waits for another; each reads
// all weights), 0 where they share the hidden units}.
extern CpuFunctions const kProducts;

// In FP32 for known weights: the input products of all steps are one matrix product, then come the steps, whose hidden
// units the workers share. The config is {vectors of the product's tile}.
extern CpuFunctions const kSteps;

namespace persistent {
// A layer in two launches: one product for what all steps get of x, then all steps at once, by blocks that keep their
// units' recurrent weights in shared memory. The config: {hidden units of a block, whether directions run side by side}.
extern CudaTactic const kF16, kF32;
} // namespace persistent

namespace registers {
// A layer in two launches, FP16: one product for what all steps get of x, then all steps at once, by warps that keep their
// units' recurrent weights in registers. The config: {how states go from step to step (recurrence_registers.cuh), hidden
// units of a warp, warps that share a block's units, warps that share k, groups of sequences, directions side by side,
// whether a block waits for one part of the states before it reads the others}.
extern CudaTactic const kF16;
} // namespace registers

} // namespace tw::ops::recurrence
