// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_strided_copy.h"

#include <algorithm>
#include <bit>

#include "families/copy/copy_params.h"
#include "families/copy/cuda_strided_copy_tiles.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kStoreBytes = 16;
constexpr int kEach = 4, kScatteredEach = 2; // units for a thread, in flight together
constexpr int64_t kWaves = 4096; // threads of a multiprocessor, about: with fewer of them a thread moves one unit
constexpr int64_t kLeastTile = 256;

// Kernels, in this order: scattered, words (of up to 3 dimensions, of more), units of 1 << shift bytes from the
// element's size on, tiles.
constexpr int kScattered = 0, kWords = 1, kUnits = 3;

int shiftOf(int64_t elementBytes)
{
    return elementBytes == 4 ? 2 : elementBytes == 2 ? 1 : 0;
}
int tilesAt(int64_t elementBytes)
{
    return kUnits + 5 - shiftOf(elementBytes);
}

// Bytes that everything is a multiple of where rows are dense on both sides.
int64_t unitBytes(Box const& b)
{
    int const last = b.dims.rank - 1;
    if (b.from[last] != 1 || b.to[last] != 1)
        return b.elementBytes;
    uint64_t all = uint64_t(b.dims[last]);
    for (int d = 0; d < last; ++d)
        all |= uint64_t(b.from[d]) | uint64_t(b.to[d]);
    if (b.low.rank)
        all |= uint64_t(b.low[last]) | uint64_t(b.high[last]);
    return widestUnit(b.elementBytes, all * uint64_t(b.elementBytes) | cuda::addressOf(b.x) | cuda::addressOf(b.y));
}

// What lies in x from the element that coordinate 0, or `low`, comes from.
ContiguousSpan wordsOf(Box const& b)
{
    int64_t low = 0, high = 1;
    for (int d = 0; d < b.dims.rank; ++d) {
        int64_t const n = b.low.rank ? b.high[d] - b.low[d] : b.dims[d];
        if (n <= 0)
            return contiguousSpan(b.x, 0, 0, b.elementBytes);
        (b.from[d] < 0 ? low : high) += (n - 1) * b.from[d];
    }
    return contiguousSpan(b.x, low, high, b.elementBytes);
}

bool isDense(Extents const& dims, Extents const& steps)
{
    int64_t step = 1;
    for (int d = dims.rank - 1; d >= 0; --d) {
        if (steps[d] != step)
            return false;
        step *= dims[d];
    }
    return true;
}

constexpr TileShape kShapes[] = {
    {256, 16 << 10}, {128, 16 << 10, false, 0, RowsBy::kWords}, {256, 32 << 10, true, 256, RowsBy::kElements}};

} // namespace

std::vector<Config> configsOfTiles(Problem const&)
{
    std::vector<Config> list;
    for (size_t i = 0; i < std::size(kShapes); ++i)
        list.push_back({int64_t(i)});
    return list;
}

TileShape tileShapeOf(Config const& config)
{
    return kShapes[isConfig(config, 1, 0, std::size(kShapes) - 1) ? size_t(config[0]) : 0];
}

Box simplified(Box const& box)
{
    Box out = box;
    out.dims = out.from = out.to = out.low = out.high = {};
    bool const bordered = box.low.rank > 0;
    bool anyBorder = false;
    for (int d = 0; d < box.dims.rank; ++d) {
        int64_t const n = box.dims[d], low = bordered ? std::clamp<int64_t>(box.low[d], 0, n) : 0,
                      high = bordered ? std::clamp<int64_t>(box.high[d], low, n) : n;
        bool const whole = low == 0 && high == n;
        anyBorder = anyBorder || !whole;
        if (n == 1 && whole)
            continue;
        int const last = out.dims.rank - 1;
        if (last >= 0 && whole && out.from[last] == box.from[d] * n && out.to[last] == box.to[d] * n) {
            out.dims[last] *= n;
            out.low[last] *= n;
            out.high[last] *= n;
            out.from[last] = box.from[d];
            out.to[last] = box.to[d];
        } else {
            out.dims.push(n);
            out.from.push(box.from[d]);
            out.to.push(box.to[d]);
            out.low.push(low);
            out.high.push(high);
        }
    }
    if (out.dims.rank == 0)
        out.add(1, 1, 1);
    if (!anyBorder)
        out.low = out.high = {};
    return out;
}

void Box::add(int64_t n, int64_t xStep, int64_t yStep)
{
    dims.push(n);
    from.push(xStep);
    to.push(yStep);
}

CudaSource stridedCopySource(int64_t elementBytes, StridedCopies what)
{
    CudaSource out;
    out.isDependent = true;
    out.text = cuda::type("Element", cuda::unitOf(elementBytes)) + cuda::constant("kStoreBytes", kStoreBytes) +
               cuda::flag("kBordered", what == StridedCopies::kBordered || what == StridedCopies::kTiledBordered) +
               cuda::include("families/copy/cuda_strided_copy.cuh");
    char const* const params = "tw::ops::StridedCopyParams";
    out.add("copy_scattered", "tw::ops::copyScattered", params, kThreads);
    out.add("copy_vec16", "tw::ops::copyByVec16<false>", params, kThreads);
    out.add("copy_vec16_deep", "tw::ops::copyByVec16<true>", params, kThreads);
    out.addUnits("move", "tw::ops::copyUnits", params, elementBytes, kThreads);
    out.general = kUnits;
    if (what == StridedCopies::kTiled || what == StridedCopies::kTiledBordered)
        addTileKernels(out, elementBytes);
    return out;
}

Result<void> stridedCopy(CudaLaunch const& launch, Box const& whole, TileShape const* tiles)
{
    if (whole.dims.volume() == 0)
        return {};
    Box b = simplified(whole);
    int const last = b.dims.rank - 1;
    bool const bordered = b.low.rank > 0;
    if (!bordered && last == 0 && b.from[0] == 1 && b.to[0] == 1)
        return launch.copy(b.y, b.x, b.dims[0] * b.elementBytes);
    bool const isGeneral = launch.isGeneral();
    tiles = isGeneral ? nullptr : tiles;
    bool onlyBehind = true; // rows of y that end in zeros
    for (int d = 0; d < b.low.rank; ++d)
        onlyBehind = onlyBehind && b.low[d] == 0 && (d == last ? !b.fill && b.high[d] > 0 : b.high[d] == b.dims[d]);
    if (tiles && onlyBehind && b.from[last] != 1 && b.to[last] == 1)
        for (int d = last - 1; d >= 0; --d) // the dimension that x is dense in
            if (b.from[d] == 1 && b.dims[d] * b.dims[last] >= kLeastTile)
                return copyTiles(launch, tilesAt(b.elementBytes), b, d, *tiles);
    int64_t const unit = isGeneral ? b.elementBytes : unitBytes(b);
    bool const scattered =
        !isGeneral && unit < kStoreBytes && isDense(b.dims, b.to) && cuda::addressOf(b.y) % kStoreBytes == 0;
    if (scattered && tiles && tiles->rows == RowsBy::kTiles && areRowTiles(b))
        return copyRowTiles(launch, tilesAt(b.elementBytes) + rowKernelOf(b.elementBytes), b);
    int64_t const wide = scattered ? 1 : unit / b.elementBytes; // elements
    StridedCopyParams p;
    p.x = b.x;
    p.y = b.y;
    p.fill = b.fill;
    std::fill_n(p.span, kMaxRank - b.dims.rank, 1);
    for (int d = 0; d < b.dims.rank; ++d) {
        int const at = kMaxRank - b.dims.rank + d;
        int64_t const low = bordered ? b.low[d] : 0, high = bordered ? b.high[d] : b.dims[d];
        p.low[at] = d == last ? low / wide : low;
        p.span[at] = (d == last ? high / wide : high) - p.low[at];
        if (d == last)
            b.dims[d] /= wide;
        else
            b.from[d] /= wide, b.to[d] /= wide;
    }
    bool const words = scattered && (!tiles || tiles->rows != RowsBy::kElements) && b.from[last] == 1 &&
                       b.dims[last] * b.elementBytes >= kLeastSegmentBytes && b.elementBytes <= kMostJoinedBytes;
    if (words)
        p.words = wordsOf(b);
    p.first = kMaxRank - b.dims.rank;
    p.loop.set(b.dims);
    p.loop.setStrides(0, b.from);
    p.loop.setStrides(1, b.to);
    p.count = uint64_t(b.dims.volume());
    int64_t const stores =
        scattered ? (int64_t(p.count) * b.elementBytes + kStoreBytes - 1) / kStoreBytes : int64_t(p.count);
    p.each = stores < kWaves * launch.multiprocessors() || unit == kMostUnit ? 1
             : scattered && !words                                           ? kScatteredEach
                                                                             : kEach;
    int const kernel = words        ? kWords + (b.dims.rank > 3)
                       : !scattered ? kUnits + std::countr_zero(uint64_t(unit / b.elementBytes))
                                    : kScattered;
    return launch(kernel, blocksFor(stores, kThreads * p.each), kThreads, p);
}

ContiguousSpan contiguousSpan(void const* x, int64_t low, int64_t high, int64_t unitBytes)
{
    uintptr_t const address = reinterpret_cast<uintptr_t>(x);
    int64_t const pack = kVec16Bytes / unitBytes;
    ContiguousSpan s;
    s.x = reinterpret_cast<void const*>(address / kVec16Bytes * kVec16Bytes);
    s.at = int64_t(address % kVec16Bytes) / unitBytes;
    s.begin = s.at + low;
    s.span = std::max<int64_t>(high - low - 2 * pack + 1, 0);
    return s;
}

} // namespace tw::ops
