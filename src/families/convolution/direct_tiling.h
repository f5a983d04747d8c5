// SPDX-License-Identifier: Apache-2.0
// What direct convolutions make for a set of shapes: rows of outputs cut into tiles, each with a kernel for
// its kind, and parts of the work.
#pragma once

#include <algorithm>
#include <vector>

#include "base/round.h"
#include "base/workers.h"
#include "families/convolution/direct_filters.h"
#include "kernels/cpu/jit/gemm_kernel.h"

namespace tw::ops {

// A row of outputs cut into tiles, for blocks of one number of vectors.
struct RowTiling
{
    int vectors = 0; // 0: no such blocks
    int64_t tiles = 0;
    std::vector<int64_t> begins; // [tiles + 1] columns
    std::vector<int> kernelOf;   // [tiles]
    std::vector<kernels::jit::GemmKernel> kernels;
};
struct ColumnPhase
{
    Phase axis;
    RowTiling tilings[2]; // of blocks with most vectors, and with one less
    RowTiling const& tiling(int64_t vectors) const { return tilings[vectors == tilings[0].vectors ? 0 : 1]; }
};

struct DirectShapes : Prepared
{
    convolution::Geometry g; // of the loops: a window of one element makes one row of all pixels
    std::vector<ColumnPhase> columns;
    int64_t xPixel = 0, yPixel = 0, residualPixel = 0; // bytes
    int64_t pixelBlocks = 1, blockParts = 1;           // parts of the work
    bool pixelsAlone = false;                          // tiles read one piece after the other
    bool fetchNext = false; // what is read lies behind L2: the next piece, or the same columns of the next rows

    explicit DirectShapes(convolution::Geometry const& geometry) : g(geometry) {}
    // Calls run(phase, group, block, pixelBlock) for all of them; phases: of rows and columns.
    template <class Run>
    void forEachBlock(Workers& workers, int64_t groups, int64_t phases, ChannelBlocks const& blocks,
                      Run const& run) const
    {
        workers.run(groups * phases * pixelBlocks * blockParts, [&](int64_t part, int) {
            int64_t const blockPart = part % blockParts, pixelBlock = part / blockParts % pixelBlocks;
            int64_t const phase = part / blockParts / pixelBlocks % phases;
            int64_t const group = part / blockParts / pixelBlocks / phases;
            int64_t const end = evenBegin(blocks.count, blockParts, blockPart + 1);
            for (int64_t b = evenBegin(blocks.count, blockParts, blockPart); b < end; ++b)
                run(phase, group, b, pixelBlock);
        });
    }
    // How much is done with one block of weights: pixels whose inputs, each of so many bytes in a group, take half of
    // the cache.
    void divide(int64_t pixelBytes, int64_t cacheBytes, int64_t groups, int64_t phases, int64_t rows, int64_t blocks,
                int threads)
    {
        int64_t inputBytes = g.batch * pixelBytes;
        for (int i = 0; i < 3; ++i) // rows and columns that a step leaves out are not read
            inputBytes *= std::min(g.in[i], g.out[i] * g.window[i]);
        int64_t const tiles = g.batch * rows * columns[0].tilings[0].tiles, apart = groups * phases;
        pixelBlocks = std::clamp<int64_t>(divideUp(2 * inputBytes, cacheBytes), 1, tiles);
        int64_t const wanted = threads > 1 ? kPartsPerThread * threads : 1, have = apart * pixelBlocks;
        if (have >= wanted)
            return;
        blockParts = std::min(blocks, divideUp(wanted, have));
        if (have * blockParts < wanted)
            pixelBlocks = std::min(tiles, divideUp(wanted, apart * blockParts));
    }
    // What each run of a kernel's loop fetches, of `runs` for a filter row.
    static int linesAhead(int rows, Phase const& axis, int64_t pixelBytes, int64_t runs)
    {
        return int(std::min(divideUp(rows * axis.stride * pixelBytes / kCacheLine, runs), kMaxNextLines));
    }
};

// Kinds of tile: rows, then begin and end of those that each tap has inputs for.
using TileKind = std::vector<int>;
TileKind tileKind(Phase const& axis, int64_t at, int64_t rows);
// `count` steps of four bytes for each tap of such a tile; they follow each other at `apart` bytes in x, `rowBytes` in B.
kernels::jit::StepLoop tapSteps(Phase const& axis, TileKind const& kind, int64_t count, int64_t xPixelBytes,
                                int64_t apart, int64_t rowBytes);

// most(vectors): rows of the tallest tile; emit(axis, vectors, kind): its kernel.
template <class Most, class Emit>
Result<RowTiling> cutRow(Phase const& axis, int vectors, Most const& most, Emit const& emit)
{
    RowTiling t;
    t.vectors = vectors;
    t.tiles = divideUp(axis.count, most(vectors));
    std::vector<TileKind> known;
    for (int64_t i = 0; i < t.tiles; ++i) {
        int64_t const at = evenBegin(axis.count, t.tiles, i);
        TileKind kind = tileKind(axis, at, evenBegin(axis.count, t.tiles, i + 1) - at);
        size_t const k = size_t(std::find(known.begin(), known.end(), kind) - known.begin());
        if (k == known.size()) {
            TW_ASSIGN(kernels::jit::GemmKernel kernel, emit(axis, vectors, kind));
            t.kernels.push_back(std::move(kernel));
            known.push_back(std::move(kind));
        }
        t.kernelOf.push_back(int(k));
        t.begins.push_back(at);
    }
    t.begins.push_back(axis.count);
    return t;
}
template <class Most, class Emit>
Result<void> cutColumns(DirectShapes& p, bool transposed, Classes const& classes, ChannelBlocks const& blocks,
                        Most const& mostRows, Emit const& emit)
{
    int const most = int(blocks.size(0)), least = int(blocks.size(blocks.count - 1));
    for (Phase& axis : phasesOf(p.g, 2, transposed, classes)) {
        ColumnPhase c;
        c.axis = std::move(axis);
        TW_ASSIGN(c.tilings[0], cutRow(c.axis, most, mostRows, emit));
        if (least != most) {
            TW_ASSIGN(c.tilings[1], cutRow(c.axis, least, mostRows, emit));
        }
        p.columns.push_back(std::move(c));
    }
    return {};
}

// Makes one row of all pixels of a window of one element that leaves none out; whether it is such.
bool joinPixels(convolution::Geometry& g);
Result<void> checkRow(ir::Node const& node, convolution::Geometry const& g, int64_t xPixel, char const* limit);

// What direct tactics take.
Support supportsDirectWindow(convolution::Geometry const& g, bool transposed);
// Microseconds, of steps of four bytes for each pixel of a window in a group; so many vectors of products a cycle; what
// follows the sums costs as much as `end` steps.
double estimateDirect(Problem const& problem, kernels::jit::Isa isa, Config const& config, int mostRows, int64_t steps,
                      double perCycle, double end);

} // namespace tw::ops
