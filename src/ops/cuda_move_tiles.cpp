// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_move_tiles.h"

#include <algorithm>

namespace tw::ops {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kPackBytes = 16, kLanes = 8;
constexpr int64_t kShortBytes = 256; // rows up to this are taken whole
constexpr int64_t kMostShared = 72 << 10;

// a: the dimension y is dense in, b: the one x is. Positions in elements, from addresses that are multiples of 16
// bytes.
struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t xBegin = 0, xEnd = 0; // what may be read
    int64_t xAt = 0, yAt = 0;
    int64_t a = 0, b = 0, aStep = 0, bStep = 0; // sizes; step of a in x, of b in y
    int32_t tileA = 1, tileB = 1;
    int32_t pitch = 0, skew = 0;    // of shared memory: from a to a, and more behind each pack's worth of them
    int32_t isFlat = 0, isEven = 0; // a tile is one stretch of x; its rows begin at packs
    cuda::Div tilesA, tilesB, xPacks, yPacks, width; // packs of a row; elements of a row of y that is taken whole
    cuda::Div lanes;                                 // rows of y side by side that neighbouring threads write
    cuda::Loop<2> others;
};

// In shared memory a row is what tile[a] has along b, from a pack's first element on wherever it began in x. y is
// written in aligned packs, and by elements at the ends of a tile's rows.
constexpr char const* kText = R"(
struct TileParams {
    void const* x; void* y; i64 xBegin, xEnd, xAt, yAt, a, b, aStep, bStep; i32 tileA, tileB, pitch, skew, isFlat, isEven;
    Div tilesA, tilesB, xPacks, yPacks, width, lanes; Loop<2> others;
};
constexpr int kSize = sizeof(Element), kPack = 16 / kSize, kSide = 4 / kSize;
extern __shared__ Whole shared[];
TW_INLINE Element elementOf(u32 v) { Element e; e.v = decltype(e.v)(v); return e; }
TW_INLINE Whole packAt(TileParams const& p, i64 e)
{
    Element const* const x = static_cast<Element const*>(p.x) + e;
    if (e >= p.xBegin && e + kPack <= p.xEnd) return *reinterpret_cast<Whole const*>(x);
    Whole v = {};
#pragma unroll
    for (int i = 0; i < kPack; ++i)
        if (e + i >= p.xBegin && e + i < p.xEnd) v.v[i / kSide] |= u32(x[i].v) << i % kSide * kSize * 8;
    return v;
}
TW_INLINE void readTile(TileParams const& p, i64 xRow, int na, int nb)
{
    bool const isFlat = p.isFlat;
    int const packs = int(p.xPacks.d), total = isFlat ? packs : na * packs;
    i64 const length = isFlat ? na * nb : nb;
    for (int begin = threadIdx.x; begin < total; begin += 4 * 256) {
        Whole v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int const w = begin + k * 256, row = isFlat ? 0 : int(divide(w, p.xPacks)), at = (w - row * packs) * kPack;
            i64 const e = xRow + row * p.aStep + at;
            v[k] = Whole{};
            if (w >= total || at >= length) continue;
            int const shift = p.isEven ? 0 : int(e & (kPack - 1));
            v[k] = packAt(p, e - shift);
            if (shift) v[k] = joined<kSize>(v[k], packAt(p, e - shift + kPack), shift);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int const w = begin + k * 256, row = isFlat ? 0 : int(divide(w, p.xPacks));
            if (w < total) shared[(row * p.pitch + row / kPack * p.skew) / kPack + (w - row * packs)] = v[k];
        }
    }
    __syncthreads();
}
TW_INLINE u32 element(TileParams const& p, int a, int b)
{
    return reinterpret_cast<Element const*>(shared)[a * p.pitch + a / kPack * p.skew + b].v;
}
// Elements (a, b) and those behind it along a.
TW_INLINE Whole gathered(TileParams const& p, int a, int b)
{
    Whole v = {};
#pragma unroll
    for (int i = 0; i < kPack; ++i) v.v[i / kSide] |= element(p, a + i, b) << i % kSide * kSize * 8;
    return v;
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
enum { kWords, kRows, kOdd, kWhole };
// Rows of y begin at packs and those of shared memory at words (kWords), or only those of y do (kRows), or neither
// (kOdd); or rows of y are taken whole and follow one another (kWhole).
template <int kKind> TW_INLINE void moveTiles(TileParams const& p)
{
    idx const rest = divide(blockIdx.x, p.tilesB), other = divide(rest, p.tilesA);
    i64 const b0 = i64(blockIdx.x - rest * idx(p.tilesB.d)) * p.tileB, a0 = i64(rest - other * idx(p.tilesA.d)) * p.tileA;
    off at[2];
    locate<$others$>(p.others, other, at);
    int const na = int(p.a - a0 < p.tileA ? p.a - a0 : p.tileA), nb = int(p.b - b0 < p.tileB ? p.b - b0 : p.tileB);
    i64 const xRow = p.xAt + at[0] + a0 * p.aStep + b0, yRow = p.yAt + at[1] + b0 * p.bStep + a0;
    waitForPrevious();
    releaseDependents();
    readTile(p, xRow, na, nb);
    Element* const y = static_cast<Element*>(p.y) + yRow;
    int const packs = int(p.yPacks.d), lanes = int(p.lanes.d), total = (nb + lanes - 1) / lanes * lanes * packs;
    if constexpr (kKind == kWords) {
        int const words = (nb + 8 * kSide - 1) / (8 * kSide) * 8 * packs;
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
                Element* const to = y + (b + side) * p.bStep + q * kPack;
                Whole const out = turned(w, side);
                if (q * kPack + kPack <= na) *reinterpret_cast<Whole*>(to) = out;
                else
#pragma unroll
                    for (int i = 0; i < kPack; ++i)
                        if (q * kPack + i < na) to[i] = elementOf(out.v[i / kSide] >> i % kSide * kSize * 8);
            }
        }
    } else if constexpr (kKind == kRows) {
        for (int v = threadIdx.x; v < total; v += 256) {
            int const line = int(divide(v, p.lanes)), group = int(divide(line, p.yPacks)),
                      b = group * lanes + v - line * lanes, a = (line - group * packs) * kPack;
            if (b >= nb || a >= na) continue;
            Element* const to = y + b * p.bStep + a;
            if (a + kPack <= na) *reinterpret_cast<Whole*>(to) = gathered(p, a, b);
            else
                for (int i = 0; a + i < na; ++i) to[i] = elementOf(element(p, a + i, b));
        }
    } else if constexpr (kKind == kOdd) {
        for (int v = threadIdx.x; v < total; v += 256) {
            int const line = int(divide(v, p.lanes)), group = int(divide(line, p.yPacks)),
                      b = group * lanes + v - line * lanes;
            int const a = (line - group * packs) * kPack + int(-(yRow + b * p.bStep) & (kPack - 1));
            if (b < nb && a + kPack <= na) *reinterpret_cast<Whole*>(y + b * p.bStep + a) = gathered(p, a, b);
        }
        // What lies in front of the first whole pack of a row, and behind the last one.
        for (int v = threadIdx.x; v < nb * 2 * kPack; v += 256) {
            int const b = v / (2 * kPack), slot = v % (2 * kPack), head = int(-(yRow + b * p.bStep) & (kPack - 1));
            int const a = slot < kPack ? slot : head + (na - head) / kPack * kPack + slot - kPack;
            if (a < na && (slot < kPack ? a < head : na >= head)) y[b * p.bStep + a] = elementOf(element(p, a, b));
        }
    } else {
        int const length = na * nb, m = int(yRow & (kPack - 1));
        for (int v = threadIdx.x; v * kPack < length + m; v += 256) {
            int const o = v * kPack - m, first = o < 0 ? 0 : o;
            int b = int(divide(first, p.width)), a = first - b * int(p.width.d);
            if (o >= 0 && o + kPack <= length) {
                Whole out = {};
#pragma unroll
                for (int i = 0; i < kPack; ++i) {
                    out.v[i / kSide] |= element(p, a, b) << i % kSide * kSize * 8;
                    if (++a == na) a = 0, ++b;
                }
                *reinterpret_cast<Whole*>(y + o) = out;
            } else {
                for (int i = first; i < o + kPack && i < length; ++i) {
                    y[i] = elementOf(element(p, a, b));
                    if (++a == na) a = 0, ++b;
                }
            }
        }
    }
}
)";

} // namespace

void addTileKernels(CudaKernels& out)
{
    out.source += cuda::expand(kText, {{"others", std::to_string(kMaxRank - 2)}});
    for (char const* kind : {"Words", "Rows", "Odd", "Whole"}) {
        out.names.push_back(std::string("move_tiles_") + kind);
        out.source += "TW_KERNEL __launch_bounds__(256) " + out.names.back() +
                      "(const __grid_constant__ TileParams p) { moveTiles<k" + kind + ">(p); }\n";
    }
    out.source +=
        "static_assert(sizeof(TileParams) == " + std::to_string(sizeof(Params)) + ", \"layout of TileParams\");\n";
    out.sharedBytes = kMostShared;
}

Result<void> moveTiles(CudaLaunch const& launch, int first, Box const& box, int dense, TileShape const& shape)
{
    int const last = box.dims.rank - 1;
    int64_t const pack = kPackBytes / box.elementBytes,
                  most = std::clamp<int64_t>(shape.bytes, 4 << 10, kMostShared / 2) / box.elementBytes,
                  brief = kShortBytes / box.elementBytes;
    Params p;
    uint64_t const x = cuda::addressOf(box.x), y = cuda::addressOf(box.y);
    p.x = reinterpret_cast<void const*>(x / kPackBytes * kPackBytes);
    p.y = reinterpret_cast<void*>(y / kPackBytes * kPackBytes);
    p.xAt = int64_t(x % kPackBytes) / box.elementBytes;
    p.yAt = int64_t(y % kPackBytes) / box.elementBytes;
    p.xBegin = p.xAt;
    p.xEnd = p.xAt + 1;
    p.a = box.dims[last];
    p.b = box.dims[dense];
    p.aStep = box.from[last];
    p.bStep = box.to[dense];
    Extents dims, xSteps, ySteps;
    bool evenX = p.xAt == 0, evenY = p.yAt == 0 && p.bStep % pack == 0;
    for (int d = 0; d <= last; ++d) {
        int64_t const reach = (box.dims[d] - 1) * box.from[d];
        (reach < 0 ? p.xBegin : p.xEnd) += reach;
        if (d == dense || d == last)
            continue;
        dims.push(box.dims[d]);
        xSteps.push(box.from[d]);
        ySteps.push(box.to[d]);
        evenX = evenX && box.from[d] % pack == 0;
        evenY = evenY && box.to[d] % pack == 0;
    }
    auto multiple = [pack](int64_t n) { return std::max(n / pack, int64_t(1)) * pack; };
    bool const flatX = p.b <= brief && p.aStep == p.b, flatY = !flatX && p.a <= brief && p.bStep == p.a;
    int64_t const run = (evenY ? 1 : 2) * shape.runBytes; // the ends of rows cost
    int64_t tileA = std::min(p.a, std::clamp(run / box.elementBytes, pack, 2 * brief)), tileB = multiple(most / tileA);
    if (flatX) {
        tileB = p.b;
        tileA = std::min(p.a, multiple(most / p.b));
        p.isFlat = 1;
    } else if (flatY) {
        tileA = p.a;
        tileB = multiple(most / p.a);
    } else if (p.b < tileB) {
        tileB = p.b;
        tileA = std::min(p.a, multiple(most / ((tileB + pack - 1) / pack * pack + pack)));
    }
    tileB = std::min(tileB, (p.b + pack - 1) / pack * pack);
    int64_t const tilesA = (p.a + tileA - 1) / tileA, tilesB = (p.b + tileB - 1) / tileB;
    // Tiles begin at packs where rows do.
    evenX = evenX && (flatX ? tilesA == 1 || tileA * p.b % pack == 0
                            : p.aStep % pack == 0 && (tilesB == 1 || tileB % pack == 0));
    evenY = evenY && (tilesA == 1 || tileA % pack == 0);
    p.tileA = int32_t(tileA);
    p.tileB = int32_t(tileB);
    int64_t const xPacks = ((flatX ? tileA * p.b : tileB) + pack - 1) / pack;
    p.isEven = evenX;
    p.pitch = int32_t(flatX ? p.b : xPacks * pack);
    // Words of a warp come from 4 groups of rows, 8 words each, in banks of their own; those of rows taken whole come
    // one by one from as many groups as there are.
    p.skew = int32_t(flatX ? 0 : flatY ? pack : 2 * pack);
    int64_t lanes = std::min(tileB, kLanes);
    for (int64_t n = lanes; n >= kLanes / 2; --n) // as few idle ones as can be
        if ((tileB + n - 1) / n * n < (tileB + lanes - 1) / lanes * lanes)
            lanes = n;
    p.lanes = cuda::divBy(lanes);
    p.tilesA = cuda::divBy(tilesA);
    p.tilesB = cuda::divBy(tilesB);
    p.xPacks = cuda::divBy(xPacks);
    p.yPacks = cuda::divBy((tileA + pack - 1) / pack);
    p.width = cuda::divBy(p.a);
    p.others.set(dims);
    p.others.setStrides(0, xSteps);
    p.others.setStrides(1, ySteps);
    // Of whole packs of rows, where words are read.
    bool const words = !flatX && !flatY && evenY;
    int64_t const groups = (tileA + pack - 1) / pack,
                  elements = flatX ? xPacks * pack : (words ? groups * pack : tileA) * p.pitch + groups * p.skew;
    enum
    {
        kWords,
        kRows,
        kOdd,
        kWhole
    };
    int const kernel = first + (flatY ? kWhole : !evenY ? kOdd : flatX ? kRows : kWords);
    return launch(kernel, tilesA * tilesB * dims.volume(), kThreads, p, elements * box.elementBytes);
}

} // namespace tw::ops
