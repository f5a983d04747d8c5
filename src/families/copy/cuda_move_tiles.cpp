// SPDX-License-Identifier: Apache-2.0
#include "families/copy/cuda_move_tiles.h"

#include <algorithm>
#include <cstdlib>

#include "families/copy/cuda_move_rows.h"
#include "families/copy/cuda_move_short.h"
#include "families/copy/cuda_move_slanted.h"

namespace tw::ops {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPackBytes = 16, kLineBytes = 128;
constexpr int64_t kShortBytes = 256; // rows up to this are taken whole
constexpr int64_t kMostShared = 72 << 10;
constexpr int64_t kNeighbours = 8; // boxes beside each other in x that follow one another

struct Params
{
    TileBox box;
    int32_t tileA = 1, tileB = 1;
    int32_t pitch = 0, skew = 0; // of shared memory: from a to a, and more behind each pack's worth of them
    cuda::Div tilesA, tilesB, xPacks, yPacks; // packs of a row
};

// Rows begin at packs on both sides. In shared memory a row is what tile[a] has along b; y is written in packs, and by
// elements at the ends of rows.
constexpr char const* kText = R"(
struct TileBox { void const* x; void* y; i64 xBegin, xEnd, xAt, yAt, a, b, aStep, bStep, present; Loop<2> others; };
struct TileParams { TileBox box; i32 tileA, tileB, pitch, skew; Div tilesA, tilesB, xPacks, yPacks; };
// Where box i lies in x and y. What is left of i becomes 0 at the outermost dimension, at the latest.
TW_INLINE void locateBox(Loop<2> const& others, idx i, off (&at)[2])
{
    at[0] = at[1] = 0;
    for (int r = 7; i != 0; --r) {
        idx const q = divide(i, others.dim[r]);
        off const c = off(i - q * idx(others.dim[r].d));
        at[0] += c * off(others.stride[0][r]);
        at[1] += c * off(others.stride[1][r]);
        i = q;
    }
}
constexpr int kSize = sizeof(Element), kPack = 16 / kSize, kSide = 4 / kSize;
extern __shared__ Whole shared[];
template <int kBytes> TW_INLINE void copyAsync(void* to, void const* from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from), "n"(kBytes) : "memory");
#else
    for (int i = 0; i < kBytes / 4; ++i) static_cast<u32*>(to)[i] = static_cast<u32 const*>(from)[i];
#endif
}
TW_INLINE void copiesDone()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}
TW_INLINE Element elementOf(u32 v) { Element e; e.v = decltype(e.v)(v); return e; }
TW_INLINE Whole packAt(TileBox const& p, i64 e)
{
    Element const* const x = static_cast<Element const*>(p.x) + e;
    if (e >= p.xBegin && e + kPack <= p.xEnd) return *reinterpret_cast<Whole const*>(x);
    Whole v = {};
#pragma unroll
    for (int i = 0; i < kPack; ++i)
        if (e + i >= p.xBegin && e + i < p.xEnd) v.v[i / kSide] |= u32(x[i].v) << i % kSide * kSize * 8;
    return v;
}
TW_INLINE void readTile(TileParams const& p, i64 xRow, int na, i64 present, int nb)
{
    int const packs = int(p.xPacks.d), total = na * packs;
    for (int begin = threadIdx.x; begin < total; begin += 4 * 256) {
        Whole v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int const w = begin + k * 256, row = int(divide(w, p.xPacks)), at = (w - row * packs) * kPack;
            i64 const e = xRow + row * p.box.aStep + at;
            v[k] = Whole{};
            if (w >= total || at >= nb || row >= present) continue;
            v[k] = packAt(p.box, e);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int const w = begin + k * 256, row = int(divide(w, p.xPacks));
            if (w < total) shared[(row * p.pitch + row / kPack * p.skew) / kPack + (w - row * packs)] = v[k];
        }
    }
    __syncthreads();
}
// Words of rows a .. a + kPack, each with elements b .. b + kSide, turned: what belongs to row b + side of y.
TW_INLINE Whole turned(u32 const (&w)[kPack], int side)
{
    Whole v;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if constexpr (kSize == 4) {
            v.v[i] = w[i];
        } else if constexpr (kSize == 2) {
            v.v[i] = __byte_perm(w[2 * i], w[2 * i + 1], side ? 0x7632 : 0x5410);
        } else {
            u32 const low = __byte_perm(w[4 * i], w[4 * i + 1], 0x0040 + 0x11 * side),
                      high = __byte_perm(w[4 * i + 2], w[4 * i + 3], 0x0040 + 0x11 * side);
            v.v[i] = __byte_perm(low, high, 0x5410);
        }
    return v;
}
TW_KERNEL __launch_bounds__(256, 5) move_tiles(const __grid_constant__ TileParams p)
{
    TileBox const& t = p.box;
    idx const rest = divide(blockIdx.x, p.tilesB), other = divide(rest, p.tilesA);
    i64 const b0 = i64(blockIdx.x - rest * idx(p.tilesB.d)) * p.tileB, a0 = i64(rest - other * idx(p.tilesA.d)) * p.tileA;
    off at[2];
    locateBox(t.others, other, at);
    int const na = int(t.a - a0 < p.tileA ? t.a - a0 : p.tileA), nb = int(t.b - b0 < p.tileB ? t.b - b0 : p.tileB);
    i64 const xRow = t.xAt + at[0] + a0 * t.aStep + b0, yRow = t.yAt + at[1] + b0 * t.bStep + a0;
    waitForPrevious();
    releaseDependents();
    readTile(p, xRow, na, t.present - a0, nb);
    Element* const y = static_cast<Element*>(t.y) + yRow;
    int const packs = int(p.yPacks.d), words = (nb + 8 * kSide - 1) / (8 * kSide) * 8 * packs;
    for (int v = threadIdx.x; v < words; v += 256) {
        int const group = int(divide(v / 8, p.yPacks)), b = (group * 8 + v % 8) * kSide, q = v / 8 - group * packs;
        if (b >= nb || q * kPack >= na) continue;
        u32 const* const s = reinterpret_cast<u32 const*>(shared) + (q * (kPack * p.pitch + p.skew) + b) / kSide;
        u32 w[kPack];
#pragma unroll
        for (int i = 0; i < kPack; ++i) w[i] = s[i * (p.pitch / kSide)];
#pragma unroll
        for (int side = 0; side < kSide; ++side) {
            if (b + side >= nb) continue;
            Element* const to = y + (b + side) * t.bStep + q * kPack;
            Whole const out = turned(w, side);
            if (q * kPack + kPack <= na) *reinterpret_cast<Whole*>(to) = out;
            else
#pragma unroll
                for (int i = 0; i < kPack; ++i)
                    if (q * kPack + i < na) to[i] = elementOf(out.v[i / kSide] >> i % kSide * kSize * 8);
        }
    }
}
)";

} // namespace

void addTileKernels(CudaKernels& out, int64_t elementBytes, TileShape const& shape)
{
    out.source += std::string(kText) + "static_assert(sizeof(TileParams) == " + std::to_string(sizeof(Params)) +
                  ", \"layout of TileParams\");\n";
    out.names.push_back("move_tiles");
    out.sharedBytes = kMostShared;
    addSlantedKernels(out, elementBytes, shape);
    addRowKernels(out);
    addShortKernels(out);
}

Result<void> moveTiles(CudaLaunch const& launch, int first, Box const& box, int dense, TileShape const& shape)
{
    int const last = box.dims.rank - 1;
    int64_t const pack = kPackBytes / box.elementBytes, word = std::max<int64_t>(4 / box.elementBytes, 1),
                  most = std::clamp<int64_t>(shape.bytes, 4 << 10, kMostShared / 2) / box.elementBytes,
                  brief = kShortBytes / box.elementBytes;
    Params p;
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
    TilePlace place;
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
    // Part of the dimension with the least step in x comes last: memory is read in longer stretches.
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
        return moveStretches(launch, first + kRowKernel + 1, t, place, shape);
    if (t.a <= brief && t.bStep == t.a)
        return moveWholeRows(launch, first + kRowKernel + 1, t, place, shape);
    if (!evenY || !place.evenX || shape.isSlanted)
        return moveSlanted(launch, first + 1, t, place, shape);
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
    return launch(first, tilesA * tilesB * place.others, kThreads, p, elements * box.elementBytes);
}

} // namespace tw::ops
