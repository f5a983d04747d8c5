// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops {

struct RunParams
{
    void const* x[8] = {};
    void const* fill = nullptr;
    void* y = nullptr;
};

// Where pieces of rows come from, a constant of the source. In bytes but for column and length; at: place of the run in
// shared memory.
struct RunPlace
{
    cuda::i64 bytes, first, planeStep, lineStep;
    cuda::u32 column, length, at;
};

struct SliceParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div dim[8];                                                    // of y, the last running fastest
    cuda::i64 size[8] = {}, start[8] = {}, step[8] = {}, stride[8] = {}; // in x
    cuda::i64 row = 0;                                                   // of y, from one to the next
};

// Elements of `unitBytes` around x, [low, high) of them there, as Piece wants them.
struct ContiguousSpan
{
    void const* x = nullptr; // aligned down to 16 bytes
    cuda::i64 at = 0;        // where element 0 lies from there
    cuda::i64 begin = 0, span = 0;
};

struct StridedCopyParams
{
    void const *x = nullptr, *fill = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::i32 first = 0, each = 1; // the first dimension that counts; units of a thread
    cuda::Loop<2> loop;            // x, y
    cuda::i64 low[8] = {}, span[8] = {};
    ContiguousSpan words; // around x
};

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

// a: the dimension y is dense in, b: the one x is. Positions in elements, from addresses that are multiples of 128
// bytes.
struct TileBox
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 xBegin = 0, xEnd = 0; // what may be read
    cuda::i64 xAt = 0, yAt = 0;
    cuda::i64 a = 0, b = 0, aStep = 0, bStep = 0; // sizes; step of a in x, of b in y
    cuda::i64 present = 0;                        // of a, what comes from x; after it are zeros
    cuda::Loop<2> others;
};

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

struct TileParams
{
    TileBox box;
    cuda::i32 tileA = 1, tileB = 1;
    cuda::i32 pitch = 0, skew = 0;            // of shared memory: from a to a, and more after each pack's worth of them
    cuda::Div tilesA, tilesB, xPacks, yPacks; // packs of a row
};

struct UnalignedParams
{
    TileBox box;
    cuda::i32 tileA = 1, tileB = 1;
    cuda::i32 slack = 0, phases = 0; // rows before a tile's own; the mask of how much earlier a row of y begins
    cuda::i32 wraps = 0;             // rows of y follow one another
    cuda::Div tilesA, tilesB, packs;
};

} // namespace tw::ops
