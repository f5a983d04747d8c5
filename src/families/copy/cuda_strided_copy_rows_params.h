// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops {

// Dimensions: b lies side by side in x, a in y; a step of a in x, of b in y. Positions in elements from addresses that
// are multiples of 128 bytes.
struct RowParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 xBegin = 0, xEnd = 0; // what may be read
    cuda::i64 xAt = 0, yAt = 0;
    cuda::i64 aStep = 0, bStep = 0;
    cuda::i32 a = 0, b = 0, tileA = 1, tileB = 1;
    cuda::i32 pitch = 0, isOne = 0;                 // shared memory from a to a; a tile is one span of x
    cuda::i32 step = 1;                             // rows of b from one that a thread writes to to the next
    cuda::Div length, tilesA, tilesB, packs, words; // of a row; of a span of x; of one of y, at most
    cuda::Loop<2> others;
};

} // namespace tw::ops
