// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_strided_copy_tiles.h"

#include <algorithm>
#include <cstdlib>

#include "families/copy/copy_params.h"
#include "families/copy/cuda_strided_copy_rows.h"
#include "families/copy/cuda_strided_copy_short.h"
#include "families/copy/cuda_strided_copy_unaligned.h"

namespace tw::ops {

namespace {

constexpr int64_t kShortBytes = 256; // rows up to this are taken whole
constexpr int64_t kMostShared = 72 << 10;
constexpr int64_t kNeighbours = 8; // boxes beside each other in x that follow one another

} // namespace

void addTileKernels(CudaSource& out, int64_t elementBytes, TileShape const& shape)
{
    out.text += cuda::include("families/copy/cuda_strided_copy_tiles.cuh");
    out.names.push_back("copy_tiles");
    out.sharedBytes = kMostShared;
    addUnalignedKernels(out, elementBytes, shape);
    addRowKernels(out);
    addShortKernels(out);
}

Result<void> copyTiles(CudaLaunch const& launch, int first, Box const& box, int dense, TileShape const& shape)
{
    int const last = box.dims.rank - 1;
    int64_t const pack = kPackBytes / box.elementBytes, word = std::max<int64_t>(4 / box.elementBytes, 1),
                  most = std::clamp<int64_t>(shape.bytes, 4 << 10, kMostShared / 2) / box.elementBytes,
                  brief = kShortBytes / box.elementBytes;
    TileParams p;
    TileBox& t = p.box;
    uint64_t const x = cuda::addressOf(box.x), y = cuda::addressOf(box.y);
    t.x = reinterpret_cast<void const*>(x / kLineBytes * kLineBytes);
    t.y = reinterpret_cast<void*>(y / kLineBytes * kLineBytes);
    t.xAt = int64_t(x % kLineBytes) / box.elementBytes;
    t.yAt = int64_t(y % kLineBytes) / box.elementBytes;
    t.xBegin = t.xAt;
    t.xEnd = t.xAt + 1;
    t.a = box.dims[last];
    t.present = box.high.rank ? box.high[last] : t.a;
    t.b = box.dims[dense];
    t.aStep = box.from[last];
    t.bStep = box.to[dense];
    Extents dims, xSteps, ySteps;
    TileFacts place;
    bool evenX = t.xAt % pack == 0, evenY = t.yAt % pack == 0 && t.bStep % pack == 0;
    place.wordsX = t.xAt % word == 0 && t.aStep % word == 0;
    place.packsY = t.yAt % pack == 0;
    for (int d = 0; d <= last; ++d) {
        int64_t const reach = ((d == last ? t.present : box.dims[d]) - 1) * box.from[d];
        (reach < 0 ? t.xBegin : t.xEnd) += reach;
        if (d == dense || d == last)
            continue;
        dims.push(box.dims[d]);
        xSteps.push(box.from[d]);
        ySteps.push(box.to[d]);
        evenX = evenX && box.from[d] % pack == 0;
        evenY = evenY && box.to[d] % pack == 0;
        place.wordsX = place.wordsX && box.from[d] % word == 0;
        place.packsY = place.packsY && box.to[d] % pack == 0;
    }
    // Part of the dimension with the least step in x comes last: memory is read in longer spans.
    int near = 0;
    for (int d = 1; d < dims.rank; ++d)
        if (std::abs(xSteps[d]) <= std::abs(xSteps[near]))
            near = d;
    if (near + 1 < dims.rank && dims[near] % kNeighbours == 0) {
        dims.push(kNeighbours);
        xSteps.push(xSteps[near]);
        ySteps.push(ySteps[near]);
        dims[near] /= kNeighbours;
        xSteps[near] *= kNeighbours;
        ySteps[near] *= kNeighbours;
    }
    t.others.set(dims);
    t.others.setStrides(0, xSteps);
    t.others.setStrides(1, ySteps);
    place.elementBytes = box.elementBytes;
    place.others = dims.volume();
    place.packsX = evenX;
    place.evenX = evenX && t.aStep % pack == 0;
    place.evenY = evenY;
    if (t.b <= brief && t.aStep == t.b)
        return copyStretches(launch, first + kRowKernel + 1, t, place, shape);
    if (t.a <= brief && t.bStep == t.a)
        return copyWholeRows(launch, first + kRowKernel + 1, t, place, shape);
    if (!evenY || !place.evenX || shape.isUnaligned)
        return copyUnaligned(launch, first + 1, t, place, shape);
    auto multiple = [pack](int64_t n) { return std::max(n / pack, int64_t(1)) * pack; };
    auto roundUp = [pack](int64_t n) { return (n + pack - 1) / pack * pack; };
    // Split evenly: no tile that is nearly empty.
    auto split = [&](int64_t n, int64_t each) {
        int64_t const tiles = std::max<int64_t>((n + each / 2) / each, 1);
        return roundUp((n + tiles - 1) / tiles);
    };
    int64_t tileA = std::min(t.a, split(t.a, std::clamp(shape.runBytes / box.elementBytes, pack, 2 * brief))),
            tileB = split(t.b, multiple(most / tileA));
    if (t.b < tileB)
        tileA = std::min(t.a, multiple(most / (roundUp(t.b) + pack)));
    tileB = std::min(tileB, roundUp(t.b));
    int64_t const tilesA = (t.a + tileA - 1) / tileA, tilesB = (t.b + tileB - 1) / tileB,
                  xPacks = roundUp(tileB) / pack;
    p.tileA = int32_t(tileA);
    p.tileB = int32_t(tileB);
    p.pitch = int32_t(xPacks * pack);
    // Words of a warp come from 4 groups of rows, 8 words each, in banks of their own.
    p.skew = int32_t(2 * pack);
    p.tilesA = cuda::divBy(tilesA);
    p.tilesB = cuda::divBy(tilesB);
    p.xPacks = cuda::divBy(xPacks);
    p.yPacks = cuda::divBy((tileA + pack - 1) / pack);
    int64_t const groups = (tileA + pack - 1) / pack,
                  elements = groups * (pack * p.pitch + p.skew); // whole packs of rows
    return launch(first, tilesA * tilesB * place.others, kTileThreads, p, elements * box.elementBytes);
}

} // namespace tw::ops
