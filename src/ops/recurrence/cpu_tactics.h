// SPDX-License-Identifier: Apache-2.0
// The tactics, each with an object for each instruction set but the plain one.
#pragma once

#include "tactic/cpu_tactic.h"

namespace tw::ops::recurrence {

// In FP32 for known weights and batches of sequences: a step is a matrix product of all sequences' states, then the cells
// of all gates' sums. Products of x come for a few steps at a time, so that they are still in L2 when the steps read them.
// The config is {vectors of the product's tile, 1 where workers share the sequences (none waits for another; each reads
// all weights), 0 where they share the hidden units}.
extern CpuFunctions const kProducts;

// In FP32 for known weights: the input products of all steps are one matrix product, then come the steps, whose hidden
// units the workers share. The config is {vectors of the product's tile}.
extern CpuFunctions const kSteps;

// Takes everything, one sequence after the other.
extern PlainTactic const kPlainCpu;

} // namespace tw::ops::recurrence
