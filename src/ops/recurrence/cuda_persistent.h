// SPDX-License-Identifier: Apache-2.0
// A layer in two launches: one product for what all steps get of x, then all steps at once, by blocks that keep their
// units' recurrent weights in shared memory. The config: {hidden units of a block, whether directions run side by side}.
#pragma once

#include "ops/recurrence/cuda_plain.h"

namespace tw::ops::recurrence::persistent {

extern CudaTactic const kF16, kF32;

} // namespace tw::ops::recurrence::persistent
