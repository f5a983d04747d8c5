// SPDX-License-Identifier: Apache-2.0
// How products of matrices are cut: rows into tiles, columns into panels, the work into parts of a block of tiles by a
// group of panels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/result.h"
#include "base/types.h"

namespace tw::kernels {

struct GemmParts
{
    int64_t panel = 0, panels = 0;                // columns of a full panel; the last may be narrower
    bool hasTail = false;                         // it is
    int64_t tiles = 0, height = 0, tallTiles = 0; // the first tallTiles have height + 1 rows
    int64_t products = 0;                         // one after the other
    int64_t tilesPerBlock = 1, rowBlocks = 0, groups = 1;

    void cut(int64_t m, int64_t tallest, int64_t columns, int64_t panelColumns);
    // Blocks whose tiles take up to `blockBytes` together. Parts: enough for every thread and some to even out, each
    // above some microseconds, which are `least` of the `operations`.
    void share(int64_t blockBytes, int64_t tileBytes, double operations, double least, int threads);

    int64_t count() const { return products * rowBlocks * groups; }
    int64_t rowOf(int64_t tile) const { return tile * height + std::min(tile, tallTiles); }
    struct Part
    {
        int64_t product, firstTile, lastTile, firstRow, rows, firstPanel, lastPanel;
    };
    Part part(int64_t i) const;
    // Calls emit(1: one row more, 1: of the narrower panel) for each kind of tile that there is.
    template <class Emit>
    Result<void> eachKind(Emit const& emit) const
    {
        for (int tall = 0; tall < (tallTiles > 0 ? 2 : 1); ++tall)
            for (int tail = 0; tail < 2; ++tail)
                if (tail ? hasTail : panels > hasTail)
                    TW_TRY(emit(tall, tail));
        return {};
    }
};

// Portable matrix product for the plain tactics: c[m,n] = sum over k of a[m,k] * b[k,n], plus bias[n] when given.

struct GemmShape
{
    int64_t m = 0, n = 0, k = 0;
    int64_t aRow = 0, aColumn = 0; // strides in elements: a[i,p] is at i * aRow + p * aColumn
    int64_t bRow = 0, bColumn = 0; // b[p,j] is at p * bRow + j * bColumn
};

// Grows with each of m, n, k.
int64_t gemmPlainWorkspaceBytes(int64_t m, int64_t n, int64_t k);
// All of one floating type; c is dense; sums in float. With k = 0 c is the bias, or zero. The workspace needs no alignment
// beyond float's.
void gemmPlain(DataType type, GemmShape const& s, void const* a, void const* b, void const* bias, void* c,
               void* workspace);

// Copies a matrix of any strides to rows one after the other: how operands are packed.

// to[i * ld + j] = from[i * rowStride + j * columnStride] for i < rows, j < columns; zero for columns <= j < width.
void copyMatrix(float* to, int64_t ld, int64_t width, float const* from, int64_t rows, int64_t columns,
                int64_t rowStride, int64_t columnStride);
// to[rowOf[i] * ld + j] = from[i + j * columnStride] for i < rows, j < columns.
void copyTransposed(float* to, int64_t ld, int64_t const* rowOf, float const* from, int64_t rows, int64_t columns,
                    int64_t columnStride);

} // namespace tw::kernels
