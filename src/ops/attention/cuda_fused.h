// SPDX-License-Identifier: Apache-2.0
// What the tactics of fused attention kernels (kernels/cuda/attention_*) have in common. q, k and v are read where they
// lie, in one tensor or several.
#pragma once

#include "kernels/cuda/attention/mma_f16.h"
#include "ops/attention/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::attention {

// How the kernel sees the masks, and which inputs it then leaves unread.
struct MaskPlan
{
    cuda::AttentionMasks masks;
    int causalInput = -1;
};
MaskPlan maskPlan(Problem const& problem);

// Elements that the rows of q, k, v and y can be copied by, of 16 bytes or less.
int copyUnit(Problem const& problem);

// Of q, k, v in `type`, heads up to 256 elements.
Support supportsFused(Problem const& problem, DataType type);

// Arguments of a run; nothing to do when there are no keys but to write zeros.
struct FusedRun
{
    cuda::AttentionArgs args;
    cuda::attention_f16::Shape shape;
};
FusedRun fusedRun(Attrs const& attrs, MaskPlan const& plan, RunArgs const& args);

KernelBag fusedKernels(MaskPlan const& plan, std::string source, int64_t sharedBytes);
// The plan's configuration names no kernel.
KernelBag damagedKernels();

// Queries and keys at the optimum, at least one.
struct FusedSizes
{
    int64_t rows, keys;
};
FusedSizes fusedSizes(Problem const& problem);

} // namespace tw::ops::attention
