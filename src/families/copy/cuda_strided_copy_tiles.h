// SPDX-License-Identifier: Apache-2.0
// Transposes by tiles in shared memory.
#pragma once

#include "families/copy/copy_params.h"
#include "families/copy/cuda_strided_copy.h"

namespace tw::ops {

constexpr int kTileThreads = 256;
// Of words, packs, the sectors of a line and the lines of memory.
constexpr int64_t kWordBytes = 4, kPackBytes = 16, kSectorBytes = 32, kLineBytes = 128;

// What the host chooses kernels by.
struct TileFacts
{
    int64_t elementBytes = 1, others = 1; // `others`: how many boxes of a by b
    bool evenX = false, evenY = false;    // rows begin at packs of 16 bytes
    bool wordsX = false;                  // or at words of 4
    bool packsX = false, packsY = false;  // the boxes do, whatever their rows
};

// Of those kernels, that of copyRowTiles().
int rowKernelOf(int64_t elementBytes);
// After the source of copyUnits(), which says what an Element is.
void addTileKernels(CudaSource& out, int64_t elementBytes);
// `first`: the position of the first of those kernels; `dense`: the dimension whose step in x is 1. That in y of the
// last one is 1. No border.
Result<void> copyTiles(CudaLaunch const& launch, int first, Box const& box, int dense, TileShape const& shape);

// Permutations whose rows stay rows.

// After the source of addTileKernels(): one kernel.
void addRowKernels(CudaSource& out);
// Whether that is for this box: rows that lie side by side in x and apart in y, and begin anywhere.
bool areRowTiles(Box const& box);
Result<void> copyRowTiles(CudaLaunch const& launch, int kernel, Box const& box);

// Transposes where rows are short and follow one another.

// After the source of addTileKernels().
void addShortKernels(CudaSource& out);
// Rows of x are short. `first`: the position of the first of those kernels.
Result<void> copyStretches(CudaLaunch const& launch, int first, TileBox const& box, TileFacts const& place,
                           TileShape const& shape);
// Rows of y are.
Result<void> copyWholeRows(CudaLaunch const& launch, int first, TileBox const& box, TileFacts const& place,
                           TileShape const& shape);

// Transposes where rows begin off packs of 16 bytes.

// After the source of addTileKernels(): a kernel for each length of rows that a tile may have.
void addUnalignedKernels(CudaSource& out, int64_t elementBytes);
// `first`: the position of the first of those kernels.
Result<void> copyUnaligned(CudaLaunch const& launch, int first, TileBox const& box, TileFacts const& place,
                           TileShape const& shape);

} // namespace tw::ops
