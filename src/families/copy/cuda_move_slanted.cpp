// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_move_slanted.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"

namespace tw::ops {

namespace {

constexpr int64_t kPackBytes = 16, kSectorBytes = 32;
constexpr int64_t kMostThreads = 384, kMostShared = 68 << 10;

struct Params
{
    TileBox box;
    int32_t tileA = 1, tileB = 1;
    int32_t slack = 0, phases = 0; // rows in front of a tile's own; the mask of how much earlier a row of y begins
    int32_t wraps = 0;             // rows of y follow one another
    cuda::Div tilesA, tilesB, packs;
};

// In shared memory a row of x lies as it came, from a unit of x's own on, and a unit is left out behind kPack rows.
// What is written are whole sectors of y: a tile begins in each row of y where its neighbour in front ends, up to a
// sector earlier than in the first. What lies across two rows of y is written by the last tile of the first one, which
// reads the first rows of x again, a column further. A thread has the packs of columns that are kStep apart: they lie
// alike in shared memory and in their sectors.
constexpr char const* kText = R"(
struct SlantedParams { TileBox box; i32 tileA, tileB, slack, phases, wraps; Div tilesA, tilesB, packs; };
constexpr int kUnit = $unitBytes$ / kSize, kPitch = $rowBytes$ / kSize, kUnits = kPitch / kUnit, kStep = 32 / kSize;
TW_KERNEL __launch_bounds__($threads$, 3) move_slanted(const __grid_constant__ SlantedParams p)
{
    TileBox const& t = p.box;
    idx const rest = divide(blockIdx.x, p.tilesB), other = divide(rest, p.tilesA);
    off at[2];
    locateBox(t.others, other, at);
    off const b0 = off(blockIdx.x - rest * idx(p.tilesB.d)) * p.tileB,
              first = off(rest - other * idx(p.tilesA.d)) * p.tileA - p.slack, most = off(t.a) - first;
    int const rows = p.tileA + p.slack, nb = int(off(t.b) - b0 < p.tileB ? off(t.b) - b0 : p.tileB);
    // Rows low .. end of the tile are this column's; behind them come the first ones of the next column.
    int const low = first < 0 ? int(-first) : 0, end = most < rows ? int(most) : rows,
              high = p.wraps ? (end + p.slack < rows ? end + p.slack : rows) : end;
    off const aStep = off(t.aStep), xRow = off(t.xAt) + at[0] + b0 + first * aStep, yRow = off(t.yAt) + at[1] + b0 * off(t.bStep), back = 1 - off(t.a) * aStep,
              present = p.wraps ? rows : off(t.present) - first;
    waitForPrevious();
    releaseDependents();
    Element* const s = reinterpret_cast<Element*>(shared);
    {
        int const u = threadIdx.x % kUnits * kUnit, step = blockDim.x / kUnits;
        Element const* const x = static_cast<Element const*>(t.x);
        off const xBegin = off(t.xBegin), xEnd = off(t.xEnd);
        bool const inside = end <= present && (high > end ? xRow - first * aStep : xRow + low * aStep) - kUnit >= xBegin &&
                            xRow + (end - 1) * aStep + nb + kUnit <= xEnd;
        int r = low + threadIdx.x / kUnits;
        off e = xRow + r * aStep;
        for (; r < high; r += step, e += step * aStep) {
            off const there = r < end ? e : e + back;
            int const shift = int(there & (kUnit - 1));
            if (u >= nb + shift) continue;
            Element* const to = s + r * kPitch + unsigned(r) / kPack * kUnit + u;
            off const from = there - shift + u;
            if (inside || (r < present && from >= xBegin && from + kUnit <= xEnd)) copyAsync<kUnit * kSize>(to, x + from);
            else
                for (int i = 0; i < kUnit; ++i) to[i] = r < present && from + i >= xBegin && from + i < xEnd ? x[from + i] : Element{};
        }
    }
    copiesDone();
    int const c0 = int(divide(threadIdx.x, p.packs)), packs = int(p.packs.d);
    off const to = yRow + c0 * off(t.bStep);
    int const q = threadIdx.x - c0 * packs, phase = int(to) & p.phases, r = p.slack - phase + q * kPack, in = r & (kPack - 1);
    if (r >= high || r + kPack <= low) return;
    int from[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
        off const e = xRow + (r + i) * aStep + (r + i < end ? 0 : back);
        from[i] = (r + i) * kPitch + (r / kPack + (in + i >= kPack ? 1 : 0)) * kUnit + (int(e) & (kUnit - 1)) + c0;
    }
    Element* y = static_cast<Element*>(t.y) + to + (first + r);
    i64 const yStep = i64(kStep) * t.bStep;
    // The two ends of a row of y: where rows follow one another, the last tile writes what lies across, by whole packs.
    // Single elements at the ends of all rows, and of each where they do not.
    bool const isFront = p.wraps && first < 0 && phase && q < kStep / kPack, isBehind = r + kPack > end;
    if (p.wraps && isBehind && r - q % (kStep / kPack) * kPack >= end) return;
    int quick = nb; // columns by whole packs
    if (isFront) quick = 0;
    else if (r < low || (isBehind && !p.wraps)) quick = 0;
    else if (isBehind && b0 + nb == off(t.b)) quick = nb - 1;
    int c = c0;
#pragma unroll 4
    for (; c < quick; c += kStep, y += yStep) {
        Whole out = {};
#pragma unroll
        for (int i = 0; i < kPack; ++i) out.v[i / kSide] |= u32(s[from[i] + (c - c0)].v) << i % kSide * kSize * 8;
        *reinterpret_cast<Whole*>(y) = out;
    }
    if (quick == nb || (p.wraps && isFront && b0 + c0 > 0)) return;
    for (; c < nb; c += kStep, y += yStep) {
#pragma unroll
        for (int i = 0; i < kPack; ++i)
            if (r + i >= low && r + i < end) y[i] = s[from[i] + (c - c0)];
        if (p.wraps) return;
    }
}
)";

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

int64_t roundUp(int64_t a, int64_t b)
{
    return cuda::ceilDiv(a, b) * b;
}

} // namespace

void addSlantedKernels(CudaKernels& out, int64_t elementBytes, TileShape const& shape)
{
    Reading const reading = readingOf(elementBytes, shape);
    out.names.push_back("move_slanted");
    out.source += cuda::expand(kText, {{"unitBytes", std::to_string(reading.unitBytes)},
                                       {"rowBytes", std::to_string(reading.rowBytes)},
                                       {"threads", std::to_string(kMostThreads)}}) +
                  "static_assert(sizeof(SlantedParams) == " + std::to_string(sizeof(Params)) +
                  ", \"layout of SlantedParams\");\n";
}

Result<void> moveSlanted(CudaLaunch const& launch, int kernel, TileBox const& box, TilePlace const& place,
                         TileShape const& shape)
{
    int64_t const size = place.elementBytes, pack = kPackBytes / size, sector = kSectorBytes / size;
    Reading const reading = readingOf(size, shape);
    Params p;
    p.box = box;
    int64_t const slack = place.evenY ? 0 : sector;
    p.slack = int32_t(slack);
    p.phases = int32_t(slack ? slack - 1 : 0);
    p.wraps = slack && box.bStep == box.a && box.present == box.a;
    // About as many rows as make a run, split evenly; half as many again are possible.
    int64_t const grain = std::max(2 * pack, 32 / sector * pack), // whole warps
        rows = std::min({shape.runBytes / size, kMostThreads / sector * pack * 2 / 3,
                         (kMostShared / reading.rowBytes - slack - grain) * 2 / 3}),
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
