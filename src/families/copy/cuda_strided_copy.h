// SPDX-License-Identifier: Apache-2.0
// Strided copies: a box of elements from one tensor to another: any order of the axes, any steps, perhaps a border that
// is filled.
#pragma once

#include <cstdint>

#include "families/copy/copy_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

struct Box
{
    int64_t elementBytes = 1;   // 1, 2 or 4
    void const* x = nullptr;    // where coordinate 0 comes from, or `low` where there is a border
    void* y = nullptr;          // where coordinate 0 goes
    Extents dims, from, to;     // in y's order, the last running fastest; steps in elements in x and y
    Extents low, high;          // [low, high) come from x, the others are filled; rank 0: all from x
    void const* fill = nullptr; // one element in GPU memory; null: zeros
    void add(int64_t n, int64_t xStep, int64_t yStep); // one more dimension, without a border
};
// Without dimensions of size 1, neighbours merged where both sides permit it.
Box simplified(Box const& box);

// The shape of tiles that are transposed: bytes of a run in y, bytes of a tile; whether rows that begin at
// packs are moved like others, and how many bytes of a row of x a tile then has at most, 0: as many as are usual; how
// rows that stay rows and begin anywhere are moved.
enum class RowsBy
{
    kTiles, // where they lie side by side in x; others by words
    kWords, // of 16 bytes, joined from two
    kElements,
};
struct TileShape
{
    int64_t runBytes = 128, bytes = 16 << 10;
    bool isUnaligned = false;
    int64_t rowBytes = 0;
    RowsBy rows = RowsBy::kTiles;
};
std::vector<Config> configsOfTiles(Problem const& problem);
TileShape tileShapeOf(Config const& config);

// Kernels of `elementBytes`, for stridedCopy(). The caller sets `wide`.
enum class StridedCopies
{
    kPlain,
    kBordered,      // and fill
    kTiled,         // and transpose by tiles
    kTiledBordered, // all of that; rows that end in zeros by tiles too
};
CudaSource stridedCopySource(int64_t elementBytes, StridedCopies what);
// `tiles`: of kTiled, null without.
Result<void> stridedCopy(CudaLaunch const& launch, Box const& box, TileShape const* tiles = nullptr);

// Kernels (cuda_words.cuh) that write a dense tensor in aligned words of 16 bytes whatever its rows are pieced together
// from: spans of elements that may begin anywhere.

// Bytes of an average segment from which words of one segment are what counts; of an element up to which joining them
// beats reading elements one by one.
constexpr int64_t kLeastSegmentBytes = 96, kMostJoinedBytes = 2;
constexpr int kVec16Threads = 256;
constexpr int64_t kVec16Bytes = 16;

ContiguousSpan contiguousSpan(void const* x, int64_t low, int64_t high, int64_t unitBytes);

} // namespace tw::ops
