// SPDX-License-Identifier: Apache-2.0
// Axes that change places, by tiles in shared memory.
#pragma once

#include "ops/cuda_move.h"

namespace tw::ops {

// Behind the text of move(), which says what an Element is.
void addTileKernels(CudaKernels& out);
// `first`: the position of the first of those kernels; `dense`: the dimension whose step in x is 1. That in y of the
// last one is 1. No border.
Result<void> moveTiles(CudaLaunch const& launch, int first, Box const& box, int dense, TileShape const& shape);

} // namespace tw::ops
