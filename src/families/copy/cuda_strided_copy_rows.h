// SPDX-License-Identifier: Apache-2.0
// Permutations whose rows stay rows.
#pragma once

#include "families/copy/cuda_strided_copy_tiles.h"

namespace tw::ops {

// After the source of addTileKernels(): one kernel.
void addRowKernels(CudaSource& out);
// Whether that is for this box: rows that lie side by side in x and apart in y, and begin anywhere.
bool areRowTiles(Box const& box);
Result<void> copyRowTiles(CudaLaunch const& launch, int kernel, Box const& box);

} // namespace tw::ops
