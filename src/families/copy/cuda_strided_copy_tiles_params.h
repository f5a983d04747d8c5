// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/copy/cuda_tile_box_params.h"

namespace tw::ops {

struct TileParams
{
    TileBox box;
    cuda::i32 tileA = 1, tileB = 1;
    cuda::i32 pitch = 0, skew = 0;            // of shared memory: from a to a, and more after each pack's worth of them
    cuda::Div tilesA, tilesB, xPacks, yPacks; // packs of a row
};

} // namespace tw::ops
