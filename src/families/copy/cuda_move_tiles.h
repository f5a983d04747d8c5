// SPDX-License-Identifier: Apache-2.0
// Axes that change places, by tiles in shared memory.
#pragma once

#include "families/copy/cuda_move.h"

namespace tw::ops {

// a: the dimension y is dense in, b: the one x is. Positions in elements, from addresses that are multiples of 128
// bytes. Kernels know it by the same name.
struct TileBox
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t xBegin = 0, xEnd = 0; // what may be read
    int64_t xAt = 0, yAt = 0;
    int64_t a = 0, b = 0, aStep = 0, bStep = 0; // sizes; step of a in x, of b in y
    int64_t present = 0;                        // of a, what comes from x; behind it are zeros
    cuda::Loop<2> others;
};
// What the host chooses kernels by.
struct TilePlace
{
    int64_t elementBytes = 1, others = 1; // `others`: how many boxes of a by b
    bool evenX = false, evenY = false;    // rows begin at packs of 16 bytes
    bool wordsX = false;                  // or at words of 4
    bool packsX = false, packsY = false;  // the boxes do, whatever their rows
};

constexpr int kRowKernel = 2; // of those kernels, that of cuda_move_rows.h
// Behind the text of move(), which says what an Element is.
void addTileKernels(CudaKernels& out, int64_t elementBytes, TileShape const& shape);
// `first`: the position of the first of those kernels; `dense`: the dimension whose step in x is 1. That in y of the
// last one is 1. No border.
Result<void> moveTiles(CudaLaunch const& launch, int first, Box const& box, int dense, TileShape const& shape);

} // namespace tw::ops
