// SPDX-License-Identifier: Apache-2.0
// Transposes where rows begin off packs of 16 bytes.
#pragma once

#include "families/copy/cuda_strided_copy_tiles.h"

namespace tw::ops {

// One kernel, After the source of addTileKernels().
void addUnalignedKernels(CudaSource& out, int64_t elementBytes, TileShape const& shape);
Result<void> copyUnaligned(CudaLaunch const& launch, int kernel, TileBox const& box, TileFacts const& place,
                           TileShape const& shape);

} // namespace tw::ops
