// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_strided_copy_unaligned.h"

#include <algorithm>

#include "base/round.h"
#include "families/copy/copy_params.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops {

namespace {

constexpr int64_t kMostThreads = 384, kMostUnalignedShared = 68 << 10;

// How rows are read and how wide they are in shared memory.
struct Reading
{
    int64_t unitBytes, rowBytes;
};
Reading readingOf(int64_t elementBytes, TileShape const& shape)
{
    Reading r = elementBytes == 4 ? Reading{16, 128} : elementBytes == 2 ? Reading{8, 256} : Reading{8, 128};
    if (shape.rowBytes)
        r.rowBytes = shape.rowBytes;
    return r;
}

} // namespace

void addUnalignedKernels(CudaSource& out, int64_t elementBytes, TileShape const& shape)
{
    Reading const reading = readingOf(elementBytes, shape);
    out.names.push_back("copy_unaligned");
    out.text += cuda::constant("kUnitBytes", reading.unitBytes) + cuda::constant("kRowBytes", reading.rowBytes) +
                cuda::constant("kMostThreads", kMostThreads) +
                cuda::include("families/copy/cuda_strided_copy_unaligned.cuh");
}

Result<void> copyUnaligned(CudaLaunch const& launch, int kernel, TileBox const& box, TileFacts const& place,
                           TileShape const& shape)
{
    int64_t const size = place.elementBytes, pack = kPackBytes / size, sector = kSectorBytes / size;
    Reading const reading = readingOf(size, shape);
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
    return launch(kernel, int64_t(p.tilesA.d * p.tilesB.d) * place.others, int(tileA / pack * sector), p, bytes);
}

} // namespace tw::ops
