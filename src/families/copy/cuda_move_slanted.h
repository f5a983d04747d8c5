// SPDX-License-Identifier: Apache-2.0
// Axes that change places where rows begin off packs of 16 bytes.
#pragma once

#include "families/copy/cuda_move_tiles.h"

namespace tw::ops {

// One kernel, After the source of addTileKernels().
void addSlantedKernels(CudaKernels& out, int64_t elementBytes, TileShape const& shape);
Result<void> moveSlanted(CudaLaunch const& launch, int kernel, TileBox const& box, TilePlace const& place,
                         TileShape const& shape);

} // namespace tw::ops
