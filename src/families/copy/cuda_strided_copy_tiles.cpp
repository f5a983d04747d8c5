// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_strided_copy_tiles.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/round.h"
#include "families/copy/copy_params.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops {

namespace {

constexpr int64_t kShortBytes = 256; // rows up to this are taken whole
constexpr int64_t kMostShared = 72 << 10;
constexpr int64_t kNeighbours = 8; // boxes beside each other in x that follow one another

} // namespace

void addTileKernels(CudaSource& out, int64_t elementBytes)
{
    out.text += cuda::include("families/copy/cuda_strided_copy_tiles.cuh");
    out.add("copy_tiles", "tw::ops::copyTiles", "tw::ops::TileParams", kTileThreads, 5);
    out.sharedBytes = kMostShared;
    addUnalignedKernels(out, elementBytes);
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
    int const shorts = rowKernelOf(box.elementBytes) + 1;
    if (t.b <= brief && t.aStep == t.b)
        return copyStretches(launch, first + shorts, t, place, shape);
    if (t.a <= brief && t.bStep == t.a)
        return copyWholeRows(launch, first + shorts, t, place, shape);
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

namespace {

constexpr int64_t kLeastRowBytes = 32, kMostRowBytes = 1 << 10;
constexpr int64_t kTileBytes = 26 << 10; // about

// The dimension whose rows lie side by side in x; -1: there is none.
int sideOf(Box const& box)
{
    int const last = box.dims.rank - 1;
    for (int d = 0; d < last - 1; ++d)
        if (box.from[d] == box.dims[last] && box.dims[d] > 1)
            return d;
    return -1;
}

} // namespace

void addRowKernels(CudaSource& out)
{
    out.text += cuda::include("families/copy/cuda_strided_copy_rows.cuh");
    out.add("copy_rows", "tw::ops::copyRows", "tw::ops::RowParams", kTileThreads, 6);
}

bool areRowTiles(Box const& box)
{
    int const last = box.dims.rank - 1;
    int64_t const row = box.dims[last] * box.elementBytes;
    constexpr int64_t kLimit = int64_t(1) << 24;
    return last >= 2 && box.low.rank == 0 && box.from[last] == 1 && box.to[last] == 1 && row >= kLeastRowBytes &&
           row <= kMostRowBytes && box.to[last - 1] == box.dims[last] && box.from[last - 1] > 0 && sideOf(box) >= 0 &&
           std::max(box.dims[last - 1], box.dims[sideOf(box)]) < kLimit;
}

Result<void> copyRowTiles(CudaLaunch const& launch, int kernel, Box const& box)
{
    int const last = box.dims.rank - 1, side = sideOf(box);
    int64_t const size = box.elementBytes, pack = kPackBytes / size, length = box.dims[last], row = length * size;
    RowParams p;
    uint64_t const x = cuda::addressOf(box.x), y = cuda::addressOf(box.y);
    p.x = reinterpret_cast<void const*>(x / kLineBytes * kLineBytes);
    p.y = reinterpret_cast<void*>(y / kLineBytes * kLineBytes);
    p.xAt = int64_t(x % kLineBytes) / size;
    p.yAt = int64_t(y % kLineBytes) / size;
    p.xBegin = p.xAt;
    p.xEnd = p.xAt + length;
    Extents dims, xSteps, ySteps;
    for (int d = 0; d < last; ++d) {
        int64_t const reach = (box.dims[d] - 1) * box.from[d];
        (reach < 0 ? p.xBegin : p.xEnd) += reach;
        if (d == side || d == last - 1)
            continue;
        dims.push(box.dims[d]);
        xSteps.push(box.from[d]);
        ySteps.push(box.to[d]);
    }
    p.others.set(dims);
    p.others.setStrides(0, xSteps);
    p.others.setStrides(1, ySteps);
    p.a = int32_t(box.dims[last - 1]);
    p.b = int32_t(box.dims[side]);
    p.aStep = box.from[last - 1];
    p.bStep = box.to[side];
    // As many rows of a as make whole sectors of y, where there are so many.
    int64_t const whole = std::min<int64_t>(kSectorBytes / std::gcd(kSectorBytes, row), p.a), most = kTileBytes / row,
                  tilesB = cuda::ceilDiv(p.b, std::clamp<int64_t>(most / whole, 1, p.b)),
                  tileB = cuda::ceilDiv(p.b, tilesB), wanted = std::max<int64_t>(most / tileB / whole, 1) * whole,
                  tileA = std::min<int64_t>(p.a, wanted);
    p.tileA = int32_t(tileA);
    p.tileB = int32_t(tileB);
    p.isOne = tileB == p.b && p.aStep == p.b * length;
    int64_t const stretch = (p.isOne ? tileA * tileB : tileB) * length, held = roundUp(stretch + pack - 1, pack);
    p.pitch = int32_t(p.isOne ? p.aStep : held);
    p.length = cuda::divBy(length);
    p.tilesA = cuda::divBy(cuda::ceilDiv(p.a, tileA));
    p.tilesB = cuda::divBy(cuda::ceilDiv(p.b, tileB));
    p.packs = cuda::divBy(held / pack);
    p.words = cuda::divBy(cuda::ceilDiv(tileA * row + kLineBytes - size, kWordBytes));
    // Rows of b that begin at the same place of a sector; enough of them for all threads.
    int64_t const alike = kSectorBytes / std::gcd(kSectorBytes, p.bStep * size),
                  least = cuda::ceilDiv(kTileThreads, int64_t(p.words.d));
    p.step = int32_t(std::min(roundUp(least, alike), tileB));
    int64_t const bytes = held * size * (p.isOne ? 1 : tileA);
    return launch(kernel, int64_t(p.tilesA.d * p.tilesB.d) * dims.volume(), kTileThreads, p, bytes);
}

namespace {

constexpr int64_t kWholeThreads = 192; // about

enum ShortKernel
{
    kStretch,
    kEvenRows,
    kRows,
    kFew,
    kToFew = kFew + 3,
};

} // namespace

void addShortKernels(CudaSource& out)
{
    out.text += cuda::include("families/copy/cuda_strided_copy_short.cuh");
    char const* const params = "tw::ops::ShortParams";
    out.add("copy_span", "tw::ops::copySpan", params, kTileThreads);
    out.add("copy_whole_even", "tw::ops::copyWholeEven", params, kTileThreads);
    out.add("copy_whole", "tw::ops::copyWhole", params, 512);
    for (std::string const what : {"few", "to_few"})
        for (std::string const count : {"2", "3", "4"})
            out.add("copy_" + what + "_" + count,
                    (what == "few" ? "tw::ops::copyFew<" : "tw::ops::copyToFew<") + count + ">", params, kTileThreads);
}

Result<void> copyStretches(CudaLaunch const& launch, int first, TileBox const& box, TileFacts const& place,
                           TileShape const& shape)
{
    int64_t const size = place.elementBytes, pack = kPackBytes / size, slack = place.evenY ? 0 : kSectorBytes / size,
                  unit = std::max(slack, pack);
    ShortParams p;
    p.box = box;
    if (box.b <= 4 && place.evenY && place.packsX && box.a % pack == 0 && box.present == box.a) {
        int64_t const tiles = cuda::ceilDiv(box.a / pack, kTileThreads);
        p.tilesA = cuda::divBy(tiles);
        return launch(first + kToFew + int(box.b) - 2, tiles * place.others, kTileThreads, p,
                      kTileThreads * box.b * kPackBytes);
    }
    p.slack = int32_t(slack);
    p.phases = int32_t(slack ? slack - 1 : 0);
    int64_t const rows = std::max(shape.bytes / size / box.b / unit, int64_t(1)) * unit,
                  all = box.a + (slack ? slack - 1 : 0), tiles = std::max<int64_t>((all + rows / 2) / rows, 1),
                  tileA = roundUp(cuda::ceilDiv(all, tiles), unit);
    p.tileA = int32_t(tileA);
    p.tileB = int32_t(box.b);
    p.tilesA = cuda::divBy(cuda::ceilDiv(all, tileA));
    p.packs = cuda::divBy(tileA / pack);
    p.lanes = cuda::divBy(box.b <= 4 ? box.b : 1);
    int64_t const bytes = roundUp((tileA + slack) * box.b * size, kPackBytes) + kPackBytes;
    return launch(first + kStretch, int64_t(p.tilesA.d) * place.others, kTileThreads, p, bytes);
}

Result<void> copyWholeRows(CudaLaunch const& launch, int first, TileBox const& box, TileFacts const& place,
                           TileShape const& shape)
{
    int64_t const size = place.elementBytes, side = kWordBytes / size, pack = kPackBytes / size;
    ShortParams p;
    p.box = box;
    if (box.a <= 4 && place.evenX && place.packsY && box.b % pack == 0) {
        int64_t const tiles = cuda::ceilDiv(box.b / pack, kTileThreads);
        p.tilesB = cuda::divBy(tiles);
        return launch(first + kFew + int(box.a) - 2, tiles * place.others, kTileThreads, p,
                      kTileThreads * box.a * kPackBytes);
    }
    if (place.evenX) {
        int64_t const line = 8 * pack, most = std::max(shape.bytes / size / box.a / line, int64_t(1)) * line;
        p.tileB = int32_t(std::min(most, box.b));
        int64_t const tiles = cuda::ceilDiv(box.b, most);
        p.tilesB = cuda::divBy(tiles);
        p.lanes = cuda::divBy(cuda::ceilDiv(p.tileB, line));
        return launch(first + kEvenRows, tiles * place.others, kTileThreads, p,
                      roundUp(p.tileB * box.a * size, kPackBytes) + 9 * kPackBytes);
    }
    int64_t const spare = place.wordsX ? 0 : side - 1,
                  words = std::max(shape.bytes / kWordBytes / box.a / 32, int64_t(1)) * 32,
                  tileB = std::min(words * side - spare, box.b), held = cuda::ceilDiv(tileB + spare, side);
    p.tileB = int32_t(tileB);
    p.pitch = int32_t(held | 1);
    int64_t const tilesB = cuda::ceilDiv(box.b, tileB);
    p.tilesB = cuda::divBy(tilesB);
    p.packs = cuda::divBy(box.a);
    p.period = cuda::divBy(box.a * pack);
    // Threads that write whole sectors together.
    int64_t const sector = kSectorBytes / kPackBytes, each = sector / std::gcd(sector, box.a),
                  groups = roundUp(std::max<int64_t>(kWholeThreads / box.a, 1), each),
                  threads = roundUp(std::max<int64_t>(groups * box.a, 128), 32);
    p.groups = cuda::divBy(groups);
    p.parts = int32_t(std::max<int64_t>(threads / 32 / box.a, 1));
    return launch(first + kRows, tilesB * place.others, int(threads), p, box.a * p.pitch * kWordBytes);
}

namespace {

constexpr int kMostThreads = 384;
constexpr int64_t kMostUnalignedShared = 68 << 10;

// How rows are read and how wide they are in shared memory.
struct Reading
{
    int64_t unitBytes, rowBytes;
};
// The usual one is the first.
std::vector<Reading> readingsOf(int64_t elementBytes)
{
    if (elementBytes == 2)
        return {{8, 256}};
    int64_t const unit = elementBytes == 4 ? 16 : 8;
    return {{unit, 128}, {unit, 256}};
}
// Its place in the list.
size_t readingOf(std::vector<Reading> const& list, TileShape const& shape)
{
    auto const at = std::ranges::find(list, shape.rowBytes, &Reading::rowBytes);
    return at == list.end() ? 0 : size_t(at - list.begin());
}

} // namespace

int rowKernelOf(int64_t elementBytes)
{
    return 1 + int(readingsOf(elementBytes).size());
}

void addUnalignedKernels(CudaSource& out, int64_t elementBytes)
{
    out.text += cuda::include("families/copy/cuda_strided_copy_unaligned.cuh");
    for (Reading const& r : readingsOf(elementBytes))
        out.add(fmt::format("copy_unaligned_{}", r.rowBytes),
                fmt::format("tw::ops::copyUnaligned<{}, {}>", r.unitBytes, r.rowBytes), "tw::ops::UnalignedParams",
                kMostThreads, 3);
}

Result<void> copyUnaligned(CudaLaunch const& launch, int first, TileBox const& box, TileFacts const& place,
                           TileShape const& shape)
{
    int64_t const size = place.elementBytes, pack = kPackBytes / size, sector = kSectorBytes / size;
    std::vector<Reading> const readings = readingsOf(size);
    size_t const at = readingOf(readings, shape);
    Reading const reading = readings[at];
    UnalignedParams p;
    p.box = box;
    int64_t const slack = place.evenY ? 0 : sector;
    p.slack = int32_t(slack);
    p.phases = int32_t(slack ? slack - 1 : 0);
    p.wraps = slack && box.bStep == box.a && box.present == box.a;
    // About as many rows as make a run, split evenly; half as many again are possible.
    int64_t const grain = std::max(2 * pack, 32 / sector * pack), // whole warps
        rows = std::min({shape.runBytes / size, kMostThreads / sector * pack * 2 / 3,
                         (kMostUnalignedShared / reading.rowBytes - slack - grain) * 2 / 3}),
                  all = box.a + (slack ? slack - 1 : 0), tilesA = std::max<int64_t>((all + rows / 2) / rows, 1),
                  tileA = roundUp(cuda::ceilDiv(all, tilesA), grain);
    bool const even = place.evenX && !p.wraps;
    int64_t const most = (reading.rowBytes - (even ? 0 : reading.unitBytes)) / size + (even ? 0 : 1),
                  tilesB = cuda::ceilDiv(box.b, most), each = cuda::ceilDiv(box.b, tilesB),
                  tileB = tilesB > 1 && place.evenX ? std::min(roundUp(each, pack), most / pack * pack) : each;
    p.tileA = int32_t(tileA);
    p.tileB = int32_t(tileB);
    p.tilesA = cuda::divBy(cuda::ceilDiv(all, tileA));
    p.tilesB = cuda::divBy(cuda::ceilDiv(box.b, tileB));
    p.packs = cuda::divBy(tileA / pack);
    int64_t const held = tileA + slack, bytes = held * reading.rowBytes + (held / pack + 1) * reading.unitBytes;
    return launch(first + int(at), int64_t(p.tilesA.d * p.tilesB.d) * place.others, int(tileA / pack * sector), p,
                  bytes);
}

} // namespace tw::ops
