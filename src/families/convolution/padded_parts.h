// SPDX-License-Identifier: Apache-2.0
// How convolutions over padded copies (padded.cpp) read images, and share out the work.
#pragma once

#include <algorithm>
#include <vector>

#include "base/round.h"
#include "families/convolution/tactics.h"

namespace tw::ops {

// Output channels of a group in blocks of up to `most` vectors.
struct PaddedBlocks
{
    int64_t const width, groups, groupK, vectors, most, count; // width: lanes of a vector; count: of a group
    PaddedBlocks(Problem const& p, kernels::jit::Isa isa, Config const& config)
        : width(kernels::jit::vectorWidth(isa)), groups(p.node->attrsAs<KernelWindowAttrs>().groups),
          groupK(p.outputs[0].dims[1] / groups), vectors(divideUp(groupK, width)), most(std::min(config[0], vectors)),
          count(divideUp(vectors, most))
    {}
    int64_t lanes(int64_t block) const { return std::min(most, vectors - block * most) * width; }
    int64_t first(int64_t block) const { return block * most * width; } // channel
    // Of packed filters: the first of a block.
    int64_t lane(int64_t group, int64_t block) const { return group * vectors * width + first(block); }
    int64_t lanesOfAll() const { return groups * vectors * width; }
    bool isMasked(bool last) const { return last && groupK % width != 0; }
    // Of the block's last vector, that exist.
    int64_t lastColumns(int64_t block) const
    {
        return std::min(groupK - first(block), lanes(block)) - (lanes(block) - width);
    }
};

// The image as it is read, and the tiles of an output row.
struct PaddedShapes : Prepared
{
    convolution::Geometry g;
    bool copies = false;
    int64_t batch = 0, out[3]{};                       // of the loops over outputs
    int64_t xPixel = 0, yPixel = 0, residualPixel = 0; // bytes; pitches and offsets, too
    int64_t stride[3]{};                               // in what is read
    int64_t extent[3]{}, pitch[3]{}, image = 0;        // of what is read: the copy, or x
    std::vector<int64_t> offsets;                      // of the pointers
    int64_t tiles = 0, tall = 0, rows = 0;             // of an output row: tiles of rows + 1 columns, then of rows
    kernels::jit::GemmKernel kernels[2][2];            // [one row more][the last block of a group]

    explicit PaddedShapes(convolution::Geometry const& geometry) : g(geometry) {}

    // extent(axis), stride(axis): of the copy. joined: the elements of a filter row are one pointer.
    template <class Extent, class Stride>
    void layOut(bool joined, Extent const& extentOf, Stride const& strideOf)
    {
        image = xPixel;
        for (int i = 2; i >= 0; --i) {
            pitch[i] = image;
            extent[i] = copies ? extentOf(i) : g.in[i];
            stride[i] = strideOf(i);
            out[i] = g.out[i];
            image *= extent[i];
        }
        batch = g.batch;
        for (int64_t d = 0; d < g.window[0]; ++d)
            for (int64_t r = 0; r < g.window[1]; ++r)
                for (int64_t s = 0; s < (joined ? 1 : g.window[2]); ++s)
                    offsets.push_back(d * g.dilation[0] * pitch[0] + r * g.dilation[1] * pitch[1] +
                                      s * g.dilation[2] * pitch[2]);
    }
    // emit(rows, last): the kernel for a tile of so many rows.
    template <class Emit>
    Result<void> cut(int64_t mostRows, Emit const& emit)
    {
        tiles = divideUp(out[2], mostRows);
        rows = out[2] / tiles;
        tall = out[2] % tiles;
        for (int more = 0; more < (tall > 0 ? 2 : 1); ++more)
            for (int last = 0; last < 2; ++last) {
                TW_ASSIGN(kernels[more][last], emit(int(rows) + more, last != 0));
            }
        return {};
    }
    int64_t tilesOfAll() const { return batch * out[0] * out[1] * tiles; }
    // Calls run(from, pixel, more): where a tile begins in x (in bytes) and in the output (in pixels).
    template <class Run>
    void forTiles(int64_t tile, int64_t end, Run const& run) const
    {
        for (; tile < end; ++tile) {
            int64_t const inRow = tile % tiles, row = tile / tiles;
            int64_t const column = inRow * rows + std::min(inRow, tall);
            int64_t const h = row % out[1], d = row / out[1] % out[0], n = row / out[1] / out[0];
            run(n * image + d * stride[0] * pitch[0] + h * stride[1] * pitch[1] + column * stride[2] * pitch[2],
                row * out[2] + column, inRow < tall);
        }
    }
    // Rows of the copy by copyRow(row), blocks of filters by packBlock(group, block) where they are packed in each run,
    // then runBlock(group, block, tile, end).
    template <class CopyRow, class PackBlock, class RunBlock>
    void share(Workers& workers, int threads, PaddedBlocks const& blocks, bool packs, CopyRow const& copyRow,
               PackBlock const& packBlock, RunBlock const& runBlock) const
    {
        int64_t const wanted = threads > 1 ? kPartsPerThread * threads : 1, all = blocks.groups * blocks.count;
        if (copies) {
            int64_t const copied = g.batch * extent[0] * extent[1], parts = std::min(copied, wanted);
            workers.run(parts, [&](int64_t i, int) {
                for (int64_t row = copied * i / parts; row < copied * (i + 1) / parts; ++row)
                    copyRow(row);
            });
        }
        if (packs)
            workers.run(all, [&](int64_t i, int) { packBlock(i / blocks.count, i % blocks.count); });
        int64_t const count = tilesOfAll(), parts = std::clamp<int64_t>(divideUp(wanted, all), 1, count);
        workers.run(all * parts, [&](int64_t i, int) {
            int64_t const part = i % parts, block = i / parts;
            runBlock(block / blocks.count, block % blocks.count, count * part / parts, count * (part + 1) / parts);
        });
    }
};

namespace padded {

using convolution::Geometry;
using kernels::jit::Factors;

inline int64_t windowOf(Geometry const& g)
{
    return g.window[0] * g.window[1] * g.window[2];
}

// From one element of an axis that is copied to the next: rounded copies leave out what no window reads.
inline int64_t copyStep(Geometry const& g, int axis, Factors factors)
{
    return isPairs(factors) && g.window[axis] == 1 ? g.stride[axis] : 1;
}
inline int64_t strideRead(Geometry const& g, int axis, Factors factors)
{
    return g.stride[axis] / copyStep(g, axis, factors);
}

// Bytes of an element of the image as products read it.
inline int64_t bytesRead(Factors factors)
{
    return factors == Factors::kWordPairs ? 2 : isBytes(factors) ? 1 : 4;
}

// Elements along an axis of what the outputs read, those of the padding included.
inline int64_t extentRead(Geometry const& g, int axis, Factors factors)
{
    return (g.out[axis] - 1) * strideRead(g, axis, factors) + (g.window[axis] - 1) * g.dilation[axis] + 1;
}

// As the loops have it; `spread`: how far elements of x are from each other in what it is read as.
struct Spread
{
    Geometry g;
    int64_t spread[3]{1, 1, 1}, in[3]{1, 1, 1}; // in: of x
    Spread(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y)
        : g(convolutionGeometry(node, x, w, y))
    {
        for (int i = 0; i < 3; ++i) {
            in[i] = g.in[i];
            if (!isTransposed(node))
                continue;
            spread[i] = g.stride[i];
            g.in[i] = std::max<int64_t>(g.in[i] - 1, 0) * g.stride[i] + std::min<int64_t>(g.in[i], 1);
            g.before[i] = (g.window[i] - 1) * g.dilation[i] - g.before[i];
            g.stride[i] = 1;
        }
    }
};

// How the sum for one output runs through the image. Its elements: floats, pairs in whole tiles, or numbers of a byte.
struct Sum
{
    bool joined = false;  // the elements of a filter row are one run
    int64_t channels = 0; // of a group
    int64_t pointers = 0, run = 0;
    int64_t steps = 0; // of a run
    Sum(Geometry const& g, Factors factors)
        : joined(g.groups == 1 && (g.dilation[2] == 1 || g.window[2] == 1)),
          channels(isPairs(factors) ? roundUp((g.c / g.groups + 1) / 2, elementsOfStep(factors)) : g.c / g.groups),
          pointers(g.window[0] * g.window[1] * (joined ? 1 : g.window[2])), run(channels * (joined ? g.window[2] : 1)),
          steps(divideUp(run, isBytes(factors) ? bytesOfStep(factors) : elementsOfStep(factors)))
    {}
    // Of emitted code: all, or without a rest where that is no less than half as many.
    int64_t stepsAtOnce() const
    {
        constexpr int64_t kMost = 12, kUsual = 8;
        if (steps <= kMost)
            return std::max<int64_t>(steps, 1);
        for (int64_t n = kMost; n >= kUsual / 2; --n)
            if (steps % n == 0)
                return n;
        return kUsual;
    }
};

} // namespace padded

} // namespace tw::ops
