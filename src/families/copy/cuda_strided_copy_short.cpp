// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_strided_copy_short.h"

#include <algorithm>
#include <numeric>

#include "base/round.h"
#include "families/copy/copy_params.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops {

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
    for (char const* name : {"copy_span", "copy_whole_even", "copy_whole", "copy_few_2", "copy_few_3", "copy_few_4",
                             "copy_to_few_2", "copy_to_few_3", "copy_to_few_4"})
        out.names.push_back(name);
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

} // namespace tw::ops
