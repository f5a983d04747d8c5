// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/copy/cuda_tile_box_params.h"

namespace tw::ops {

struct ShortParams
{
    TileBox box;
    cuda::i32 tileA = 1, tileB = 1;
    cuda::i32 slack = 0, phases = 0; // rows before a tile's own; the mask of how much earlier a row of y begins
    cuda::i32 pitch = 0, parts = 1;  // of tiles of whole rows of y: words of a row of x; warps that share one
    cuda::Div tilesA, tilesB, packs;
    cuda::Div lanes;          // rows of y side by side that neighbouring threads write; lines of a row of x
    cuda::Div groups, period; // how often a block has its threads' packs side by side; elements from one to the next
};

} // namespace tw::ops
