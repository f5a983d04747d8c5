// SPDX-License-Identifier: Apache-2.0
// Transposes where rows are short and follow one another.
#pragma once

#include "families/copy/cuda_strided_copy_tiles.h"

namespace tw::ops {

// After the source of addTileKernels().
void addShortKernels(CudaSource& out);
// Rows of x are short. `first`: the position of the first of those kernels.
Result<void> copyStretches(CudaLaunch const& launch, int first, TileBox const& box, TileFacts const& place,
                           TileShape const& shape);
// Rows of y are.
Result<void> copyWholeRows(CudaLaunch const& launch, int first, TileBox const& box, TileFacts const& place,
                           TileShape const& shape);

} // namespace tw::ops
