// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/copy/cuda_tile_box_params.h"

namespace tw::ops {

struct UnalignedParams
{
    TileBox box;
    cuda::i32 tileA = 1, tileB = 1;
    cuda::i32 slack = 0, phases = 0; // rows before a tile's own; the mask of how much earlier a row of y begins
    cuda::i32 wraps = 0;             // rows of y follow one another
    cuda::Div tilesA, tilesB, packs;
};

} // namespace tw::ops
