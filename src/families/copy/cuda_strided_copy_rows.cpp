// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_strided_copy_rows.h"

#include <algorithm>
#include <numeric>

#include "base/round.h"
#include "families/copy/copy_params.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops {

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
    out.names.push_back("copy_rows");
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

} // namespace tw::ops
